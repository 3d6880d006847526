// Embedding tables in a process of somebody else: keys to vectors, and gradients to updates of rows.
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

/// The keys of one feature in a batch. Memory of the set's device.
struct FeatureKeys {
  const void* keys = nullptr;           ///< [count]
  ElementType type = ElementType::i64;  ///< i32 u32 i64 u64; unsigned 64-bit keys are taken bit by bit
  int64_t count = 0;
  /// [samples + 1]: sample b has keys [offsets[b] - offsets[0], offsets[b + 1] - offsets[0]). Null: one key each.
  const void* offsets = nullptr;
  ElementType offsets_type = ElementType::i64;  ///< i32 or i64
  const float* weights = nullptr;               ///< [count], of a weighted feature; null: all are 1
};

/// Vectors of one feature, f32 in memory of the set's device: [samples, dim], or [count, dim] with Pooling::none.
template <class T>
struct FeatureVectors {
  T* data = nullptr;
  int64_t stride = 0;  ///< elements from one vector to the next; 0: dim
};

/// The gradients of one table, summed by row, in memory of the set's device.
struct RowGradients {
  int64_t* keys = nullptr;  ///< [keys_of_batch() of the table] of each row that the batch has, without repeats
  float* values = nullptr;  ///< [likewise, dim]
};

/// Rows of a table in memory of the host. Row i has keys[i], elements [i * dim, (i + 1) * dim) of `vectors`, and of
/// each state of the optimizer likewise; a row-wise state has one element a row.
struct TableRows {
  std::span<const int64_t> keys;
  std::span<const float> vectors;
  std::vector<std::span<const float>> states{};
};

/// Where the rows of a table are.
struct EmbeddingMemory {
  int64_t rows = 0;          ///< in memory and on the disk
  int64_t rows_on_host = 0;  ///< of them, those of which some numbers are in memory of the host, beside a device
  int64_t rows_on_disk = 0;
  int64_t device_bytes = 0, host_bytes = 0;
};

/// What an update is given.
struct UpdateStep {
  float learning_rate = 0;
  const float* rate_on_device = nullptr;  ///< instead of learning_rate, on the set's device
  float loss_scale = 1;                   ///< that gradients are divided by
  const float* skip = nullptr;            ///< on the set's device: not 0 means that nothing changes; null: it does
};

/// Tables of different widths behind one call. The rows of a batch are those that forward() has found or added, until
/// update() or release(). Batches may differ in samples and keys. Gradients of a row are summed in the order of the
/// keys, features in their order, so results do not depend on threads; every step of a row is one update.
///
/// On several ranks each gives the samples that it has, of any number, also none, and gets their vectors. The batch is
/// that of all ranks, one after another, and results are those of one rank with it: bit for bit on CPUs; on GPUs but
/// for the last bits where a mean or sqrtn without weights divides gradients. Collective calls are those that say so,
/// and all ranks make them in the same order. What one rank refuses or lacks, all throw, with the rank's number, and
/// the set goes on; an error in the middle of an exchange ends the group. Such calls wait for the other ranks, so they
/// cannot be recorded.
///
/// One thread at a time. Work goes to the stream of the caller, who waits for it: pointers that are passed in must stay
/// valid until then. Only what says so waits itself.
class HCTR_API EmbeddingSet {
 public:
  /// Collective. Errors: Error(usage) for names that occur twice or do not exist and for numbers out of range;
  /// Error(device).
  explicit EmbeddingSet(const EmbeddingOptions&);
  ~EmbeddingSet();
  EmbeddingSet(EmbeddingSet&&) noexcept;
  EmbeddingSet& operator=(EmbeddingSet&&) noexcept;

  const EmbeddingOptions& options() const;
  /// The stream that work goes to from now on, behind all that went to the one before.
  void set_stream(void* stream);

  /// A batch that forward() or prefetch() has made.
  using Batch = int64_t;
  /// Finds the rows of the keys, adds those that are missing as the tables' policies say, and writes the vectors. The
  /// batch must be ended by update() or release(), in the order in which batches were made. Collective. Waits where a
  /// table needs memory. Errors: Error(usage) for arrays that do not fit, or more batches than options().batches;
  /// Error(data) for a row number that does not exist, or more rows than most_rows; Error(device).
  Batch forward(int64_t samples, std::span<const FeatureKeys>, std::span<const FeatureVectors<float>>);
  /// The first half of that, collective too: vectors come with the second call, after the updates of the batches
  /// before.
  Batch prefetch(int64_t samples, std::span<const FeatureKeys>);
  void forward(Batch, std::span<const FeatureVectors<float>>);
  /// How many vectors each feature has in it: samples, or keys with Pooling::none. Errors: Error(usage) where it has
  /// ended.
  std::vector<int64_t> vectors_of_batch(Batch) const;
  /// How many keys of each table this rank looks up in it: those that its samples have; on several ranks those of all
  /// samples whose rows it has. Errors: likewise.
  std::vector<int64_t> keys_of_batch(Batch) const;
  /// Without a group: does the part of the next forward() or prefetch() for which it might wait: once for each, before.
  /// From then on that call may be recorded into a CUDA graph, and replayed after another reserve() for each replay,
  /// with batches of at most as many keys. The batch of a replay is that of the recording.
  void reserve(int64_t samples, std::span<const int64_t> keys_of_features);

  /// Without a group: memory for look-ups of at most so many samples and keys of each feature, which take none from
  /// then on. Such a look-up may be recorded into a CUDA graph and replayed, where rows are not on a disk, whatever
  /// other calls come in between. Waits.
  void reserve_lookup(int64_t samples, std::span<const int64_t> keys_of_features);

  /// dw = the gradient of each weight of the weighted features, given those of their vectors; null for others. Shapes:
  /// [count].
  void weight_gradients(Batch, std::span<const FeatureVectors<const float>> gradients, std::span<float* const> dw);
  /// Updates the rows of the batch with the gradients of its vectors. Ends the batch. Collective; all ranks give the
  /// same step, and the same value of `skip`.
  void update(Batch, std::span<const FeatureVectors<const float>> gradients, const UpdateStep&);
  /// The gradients of rows, for an optimizer of the caller: one for each table. Returns how many rows of each table
  /// this rank has in the batch; waits for that. Ends the batch, unless `ends` is false: then update() may follow, with
  /// the same gradients or others. Collective.
  std::vector<int64_t> row_gradients(Batch, std::span<const FeatureVectors<const float>> gradients,
                                     std::span<const RowGradients>, bool ends = true);
  /// Ends the batch without an update: its rows stay. All ranks do.
  void release(Batch);

  /// Writes the vectors of keys as the last ended batch has left them. Adds no rows: a key without one has the vector
  /// 0. Collective.
  void lookup(int64_t samples, std::span<const FeatureKeys>, std::span<const FeatureVectors<float>>);

  /// Updates so far that were not skipped. Waits.
  int64_t updates();
  /// Sets their number, that of a saved state: Adam's corrections depend on it.
  void set_updates(int64_t);

  /// Bytes of options().allocator that the set has now.
  int64_t allocated_bytes() const;

  // Of one table. All wait; no batch may be under way. Collective: counts and bytes are sums over all ranks, where a
  // replicated row counts once, and its bytes on each rank; rows and removed keys of all ranks come to rank 0, and to
  // others none. Errors: Error(usage) for an unknown name.
  int64_t rows(const std::string& table);
  EmbeddingMemory memory(const std::string& table);
  /// Counts by name: rows, rows_evicted, rows_expired, ...; empty without a policy.
  std::map<std::string, int64_t> counts(const std::string& table);
  /// Passes all rows to `sink`, in blocks, by ascending keys. `states`: with the states of the optimizer.
  void export_rows(const std::string& table, bool states, const std::function<void(const TableRows&)>& sink);
  /// Those that may have changed since note_exported(). Needs marks_changes.
  void export_changed_rows(const std::string& table, bool states, const std::function<void(const TableRows&)>& sink);
  /// The keys whose rows have gone since then.
  std::vector<int64_t> removed_keys(const std::string& table);
  void note_exported();
  /// Adds rows, or overwrites those that exist. All ranks give the same rows, and each takes its own. Errors:
  /// Error(data) for a key that occurs twice, a row number that does not exist, or more rows than most_rows.
  void import_rows(const std::string& table, const TableRows&);
  /// Removes the rows of these keys, the same on all ranks; keys without a row are left out. Returns how many rows that
  /// were. Errors: Error(usage) for a table with row numbers, or one whose rows may be on a disk.
  int64_t remove_rows(const std::string& table, std::span<const int64_t> keys);

  /// Writes everything that decides later numbers to a folder, which must not exist or be one of save(). Collective:
  /// each rank writes its rows to the folder, which all can reach. Errors: Error(io).
  void save(const std::filesystem::path& folder);
  /// Takes the state of a set of the same tables, which has had no batch: then it goes on as that one would have, also
  /// on another number of ranks. Collective.
  /// Errors: Error(io); Error(data) for another set, or a damaged file.
  void load(const std::filesystem::path& folder);

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace hctr
