// Embedding tables for use inside another program: keys to vectors, and gradients to row updates.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hctr/arrays.h"
#include "hctr/embedding_options.h"
#include "hctr/export.h"

namespace hctr {

/// The keys of one feature in a batch, in memory of the set's device.
struct FeatureKeys {
  const void* keys = nullptr;           ///< [count]
  ElementType type = ElementType::i64;  ///< i32 u32 i64 u64; unsigned 64-bit keys keep their bits
  int64_t count = 0;
  /// [samples + 1]: sample b has keys [offsets[b] - offsets[0], offsets[b + 1] - offsets[0]). Null: one key each.
  const void* offsets = nullptr;
  ElementType offsets_type = ElementType::i64;  ///< i32 or i64
  const float* weights = nullptr;               ///< [count], for a weighted feature; null: all are 1
};

/// Vectors of one feature, f32 in memory of the set's device: [samples, dim], or [count, dim] with Pooling::none.
template <class T>
struct FeatureVectors {
  T* data = nullptr;
  int64_t stride = 0;  ///< elements between the starts of two vectors; 0: dim
};

/// The gradients of one table, summed by row, in memory of the set's device.
struct RowGradients {
  int64_t* keys = nullptr;  ///< [keys_of_batch() of the table] the key of each row in the batch, without duplicates
  float* values = nullptr;  ///< [likewise, dim]
};

/// Rows of a table in host memory. Row i has keys[i], elements [i * dim, (i + 1) * dim) of `vectors`, and likewise of
/// each optimizer state; a row-wise state has one element per row.
struct TableRows {
  std::span<const int64_t> keys;
  std::span<const float> vectors;
  std::vector<std::span<const float>> states{};
};

/// The memory that a table's rows occupy.
struct EmbeddingMemory {
  int64_t rows = 0;          ///< in memory and on disk
  int64_t rows_on_host = 0;  ///< rows that are in host memory at least in part, if the device is a GPU
  int64_t rows_on_disk = 0;
  int64_t device_bytes = 0, host_bytes = 0;
};

/// The arguments of an update.
struct UpdateStep {
  float learning_rate = 0;
  const float* rate_on_device = nullptr;  ///< replaces learning_rate, on the set's device
  float loss_scale = 1;                   ///< gradients are divided by it
  const float* skip = nullptr;            ///< on the set's device: nonzero skips the update; null: never skips
};

/// Tables of different widths behind one call. The rows of a batch are those that forward() has found or added, until
/// update() or release(). Batches may differ in samples and keys. Gradients of a row are summed in the order of the
/// keys, features in order, so results do not depend on threads; every step updates a row once.
///
/// On several ranks each rank passes any number of samples, also none, and receives their vectors. The batch is that of
/// all ranks, one after another, and results equal those of one rank with this batch: bit for bit on CPUs; on GPUs
/// except for the last bits if an unweighted mean or sqrtn divides gradients. Collective calls are marked; all ranks
/// make them in the same order. An error of one rank is thrown on all, with the rank's number, and the set remains
/// usable; an error in the middle of an exchange ends the group. Collective calls wait for the other ranks, so they
/// cannot be recorded.
///
/// One thread at a time. Work is queued on the caller's stream, and the caller waits for it: arguments must stay valid
/// until then. Only calls that say so wait themselves.
class HCTR_API EmbeddingSet {
 public:
  /// Collective. Errors: Error(usage) for duplicate or unknown names and for numbers out of range; Error(device).
  explicit EmbeddingSet(const EmbeddingOptions&);
  ~EmbeddingSet();
  EmbeddingSet(EmbeddingSet&&) noexcept;
  EmbeddingSet& operator=(EmbeddingSet&&) noexcept;

  const EmbeddingOptions& options() const;
  /// Sets the stream for later work, which runs after all work on the previous stream.
  void set_stream(void* stream);

  /// A batch that forward() or prefetch() has made.
  using Batch = int64_t;
  /// Finds the rows of the keys, adds missing rows as the tables' policies say, and writes the vectors. End the batch
  /// with update() or release(), in the order in which batches were made. Collective. Waits if a table needs memory.
  /// Errors: Error(usage) for arrays that do not fit, or more batches than options().batches; Error(data) for a row
  /// number that does not exist, or more rows than most_rows; Error(device).
  Batch forward(int64_t samples, std::span<const FeatureKeys>, std::span<const FeatureVectors<float>>);
  /// The first half of forward(), also collective: call forward() with the batch for the vectors, after the updates of
  /// earlier batches.
  Batch prefetch(int64_t samples, std::span<const FeatureKeys>);
  void forward(Batch, std::span<const FeatureVectors<float>>);
  /// The number of vectors of each feature in the batch: samples, or keys with Pooling::none. Errors: Error(usage) if
  /// it has ended.
  std::vector<int64_t> vectors_of_batch(Batch) const;
  /// The number of keys of each table that this rank looks up in the batch: the keys of its samples or, on several
  /// ranks, the keys of all samples whose rows it owns. Errors: likewise.
  std::vector<int64_t> keys_of_batch(Batch) const;
  /// Without a group: does the part of the next forward() or prefetch() that might wait. Call it once before each; then
  /// that call may be recorded into a CUDA graph, and replayed after another reserve() for each replay, with batches of
  /// at most as many keys. The batch of a replay is that of the recording.
  void reserve(int64_t samples, std::span<const int64_t> keys_of_features);

  /// Without a group: reserves memory for look-ups of at most this many samples and keys of each feature, which then
  /// allocate none. If no rows are on disk, such a look-up may be recorded into a CUDA graph and replayed between any
  /// other calls. Waits.
  void reserve_lookup(int64_t samples, std::span<const int64_t> keys_of_features);

  /// dw = the gradient with respect to each key's weight in weighted features, from the gradients of their vectors;
  /// null for other features. Shapes: [count].
  void weight_gradients(Batch, std::span<const FeatureVectors<const float>> gradients, std::span<float* const> dw);
  /// Updates the rows of the batch with the gradients of its vectors. Ends the batch. Collective; all ranks pass the
  /// same step, and the same value of `skip`.
  void update(Batch, std::span<const FeatureVectors<const float>> gradients, const UpdateStep&);
  /// The gradients of rows, for an optimizer of the caller: one for each table. Returns how many rows of each table
  /// this rank has in the batch; waits for that. Ends the batch, unless `ends` is false: then update() may follow, with
  /// the same gradients or others. Collective.
  std::vector<int64_t> row_gradients(Batch, std::span<const FeatureVectors<const float>> gradients,
                                     std::span<const RowGradients>, bool ends = true);
  /// Ends the batch without an update: its rows stay. All ranks do.
  void release(Batch);

  /// Writes the vectors of keys as of the last ended batch. Adds no rows: a key without one has the vector 0.
  /// Collective.
  void lookup(int64_t samples, std::span<const FeatureKeys>, std::span<const FeatureVectors<float>>);

  /// The number of updates that were not skipped. Waits.
  int64_t updates();
  /// Sets that number, for a restored state: Adam's bias correction depends on it.
  void set_updates(int64_t);

  /// Bytes that the set has allocated from options().allocator.
  int64_t allocated_bytes() const;

  // The following are for one table. They wait; no batch may be in progress. Collective: counts and bytes are sums over
  // all ranks (a replicated row counts once, its bytes on each rank); rank 0 receives the rows and removed keys of all
  // ranks, other ranks none. Errors: Error(usage) for an unknown name.
  int64_t rows(const std::string& table);
  EmbeddingMemory memory(const std::string& table);
  /// Counts by name: rows, rows_evicted, rows_expired, ...; empty without a policy.
  std::map<std::string, int64_t> counts(const std::string& table);
  /// Passes all rows to `sink`, in blocks, by ascending keys. `states`: with the optimizer states.
  void export_rows(const std::string& table, bool states, const std::function<void(const TableRows&)>& sink);
  /// The same for rows that may have changed since note_exported(). Needs marks_changes.
  void export_changed_rows(const std::string& table, bool states, const std::function<void(const TableRows&)>& sink);
  /// The keys whose rows have been removed since then.
  std::vector<int64_t> removed_keys(const std::string& table);
  void note_exported();
  /// Adds rows, or overwrites existing ones. All ranks pass the same rows, and each keeps its own. Errors: Error(data)
  /// for a duplicate key, a row number that does not exist, or more rows than most_rows.
  void import_rows(const std::string& table, const TableRows&);
  /// Removes the rows of these keys, the same on all ranks; keys without a row are left out. Returns how many rows that
  /// were. Errors: Error(usage) for a table with row numbers, or one whose rows may be on a disk.
  int64_t remove_rows(const std::string& table, std::span<const int64_t> keys);

  /// Writes everything that later results depend on to a folder, which must be new or written by save(). Collective:
  /// each rank writes its rows to the folder, which all ranks must be able to access. Errors: Error(io).
  void save(const std::filesystem::path& folder);
  /// Restores the state of a set of the same tables, before any batch: the set then continues as the saved one would
  /// have, also on another number of ranks. Collective. Errors: Error(io); Error(data) for another set, or a damaged
  /// file.
  void load(const std::filesystem::path& folder);

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace hctr
