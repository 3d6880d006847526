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
  ElementType type = ElementType::i64;  ///< i32, u32, i64 or u64; a u64 key is used as the i64 that has the same bits
  int64_t count = 0;
  /// [samples + 1]: sample b has keys [offsets[b] - offsets[0], offsets[b + 1] - offsets[0]). Null: each sample has one
  /// key.
  const void* offsets = nullptr;
  ElementType offsets_type = ElementType::i64;  ///< i32 or i64
  const float* weights = nullptr;               ///< [count], for a weighted feature; null: all weights are 1
};

/// Vectors of one feature, f32 in memory of the set's device: [samples, dim], or [count, dim] with Pooling::none.
template <class T>
struct FeatureVectors {
  T* data = nullptr;
  int64_t stride = 0;  ///< elements between the starts of two vectors; 0: dim
};

/// The gradients of one table, summed by row, in memory of the set's device.
struct RowGradients {
  int64_t* keys = nullptr;  ///< [keys_of_batch() of the table]: the keys of the rows, without duplicates
  float* values = nullptr;  ///< [keys_of_batch() of the table, dim]: the summed gradient of each row
};

/// Rows of a table in host memory. Row i has key keys[i] and elements [i * dim, (i + 1) * dim) of `vectors` and of each
/// optimizer state; a row-wise state has one element per row.
struct TableRows {
  std::span<const int64_t> keys;
  std::span<const float> vectors;
  std::vector<std::span<const float>> states{};
};

/// The memory that a table's rows occupy.
struct EmbeddingMemory {
  int64_t rows = 0;          ///< rows in memory and on disk
  int64_t rows_on_host = 0;  ///< GPU only: rows of which any part is in host memory
  int64_t rows_on_disk = 0;
  int64_t device_bytes = 0, host_bytes = 0;
};

/// The arguments of an update.
struct UpdateStep {
  float learning_rate = 0;
  const float* rate_on_device = nullptr;  ///< [1] on the set's device; if not null, replaces learning_rate
  float loss_scale = 1;                   ///< the update divides gradients by this value
  const float* skip = nullptr;            ///< [1] on the set's device; if not null, a nonzero value skips the update
};

/// A set of embedding tables, possibly of different dims, with one call for all features. forward() finds or adds the
/// rows of a batch; these rows stay until update() or release(). Batches may differ in samples and keys. Gradients of a
/// row are summed in the order of features and keys, so results do not depend on the number of threads. Every step
/// updates a row once.
///
/// On several ranks each rank passes any number of samples, possibly none, and receives the vectors of these samples.
/// The batch is the concatenation of all ranks' samples. Results equal those of one rank with this batch, bit for bit
/// on CPUs; on GPUs the last bits may differ for features with unweighted mean or sqrtn pooling, which divides
/// gradients. Calls marked "Collective" must be made by all ranks in the same order. They wait for the other ranks, so
/// they cannot be recorded into a CUDA graph. An error of one rank is thrown on all ranks, with that rank's number, and
/// the set remains usable; an error in the middle of an exchange ends the group.
///
/// Not thread-safe. Work is queued on the caller's stream, and arguments must stay valid until the work has run. A call
/// waits for its work only if its comment says so.
class HCTR_API EmbeddingSet {
 public:
  /// Collective. Errors: Error(usage) for duplicate or unknown names and for numbers out of range; Error(device).
  explicit EmbeddingSet(const EmbeddingOptions&);
  ~EmbeddingSet();
  EmbeddingSet(EmbeddingSet&&) noexcept;
  EmbeddingSet& operator=(EmbeddingSet&&) noexcept;

  const EmbeddingOptions& options() const;
  /// Sets the stream for later work. Later work waits for all work on the previous stream, unless one of the streams is
  /// being captured. In that case the caller orders the work.
  void set_stream(void* stream);

  /// Identifies a batch of forward() or prefetch().
  using Batch = int64_t;
  /// Finds the rows of the keys, adds missing rows according to the tables' policies, and writes the vectors. End
  /// batches with update() or release(), in the order in which forward() or prefetch() made them. Collective. Waits if
  /// a table needs memory. Errors: Error(usage) for arrays with wrong sizes, or more batches than options().batches;
  /// Error(data) for a row number that does not exist, or more rows than most_rows; Error(device).
  Batch forward(int64_t samples, std::span<const FeatureKeys>, std::span<const FeatureVectors<float>>);
  /// The first step of forward(): finds and adds rows. After the updates of earlier batches, forward(batch) writes the
  /// vectors. On a GPU without a group this runs on a stream of the set, concurrently with later work of the caller's
  /// stream, so the keys must not change before forward(batch). Collective.
  Batch prefetch(int64_t samples, std::span<const FeatureKeys>);
  void forward(Batch, std::span<const FeatureVectors<float>>);
  /// Writes the row numbers of each feature's keys. to[f]: [count of feature f]; 0: the key has no row. Returns the
  /// number of remove_rows() calls so far, which prefetch() needs together with these row numbers. Only without a
  /// group, tiers and policies, because those move or remove rows. Errors: Error(usage).
  int64_t row_numbers(Batch, std::span<int32_t* const> to);
  /// Like prefetch(), for keys whose row numbers are known from row_numbers() of earlier batches: nothing is looked up,
  /// and no rows are added. To sum the gradients of several batches, concatenate their keys, row numbers and gradients.
  /// rows[f]: [count of feature f]. Runs on the caller's stream. Errors: Error(usage), also if rows have been removed
  /// since row_numbers().
  Batch prefetch(int64_t samples, std::span<const FeatureKeys>, std::span<const int32_t* const> rows, int64_t removals);
  /// The number of vectors of each feature in the batch: samples, or keys with Pooling::none. Errors: Error(usage) if
  /// the batch has ended.
  std::vector<int64_t> vectors_of_batch(Batch) const;
  /// The number of keys that this rank looks up in each table for the batch. Without a group, these are the keys of its
  /// own samples. On several ranks, they are the keys, among those of all ranks' samples, whose rows this rank owns.
  /// Errors: Error(usage) if the batch has ended.
  std::vector<int64_t> keys_of_batch(Batch) const;
  /// Only without a group. Allocates in advance what the next forward() or prefetch() needs, so that forward() or
  /// prefetch() can be recorded into a CUDA graph. Call reserve() before each recording and before each replay. A
  /// replay may have at most as many keys as the reservation. The Batch of a replay is the Batch of the recording.
  void reserve(int64_t samples, std::span<const int64_t> keys_of_features);

  /// Only without a group. Reserves memory for look-ups of at most this many samples, and at most this many keys per
  /// feature. Such look-ups allocate nothing. If no rows are on disk, such a look-up can be recorded into a CUDA graph
  /// and replayed between any other calls. Waits.
  void reserve_lookup(int64_t samples, std::span<const int64_t> keys_of_features);

  /// Computes the gradient of each key's weight from the gradients of the vectors. dw[f]: [count] for a weighted
  /// feature f, null for other features.
  void weight_gradients(Batch, std::span<const FeatureVectors<const float>> gradients, std::span<float* const> dw);
  /// Updates the rows of the batch from the gradients of its vectors, and ends the batch. Collective: all ranks pass
  /// the same step, and the same value of `skip`.
  void update(Batch, std::span<const FeatureVectors<const float>> gradients, const UpdateStep&);
  /// Writes the gradients of the batch's rows, one RowGradients per table, for an optimizer of the caller. Waits until
  /// the rows are counted, and returns the number of rows per table on this rank. Ends the batch, unless `ends` is
  /// false: then update() may follow, with the same or other gradients. Collective.
  std::vector<int64_t> row_gradients(Batch, std::span<const FeatureVectors<const float>> gradients,
                                     std::span<const RowGradients>, bool ends = true);
  /// Ends the batch without an update and keeps the rows. Collective.
  void release(Batch);

  /// Writes the vectors of keys, with the values after the last ended batch. Adds no rows, so a key without a row has
  /// vector 0. Collective.
  void lookup(int64_t samples, std::span<const FeatureKeys>, std::span<const FeatureVectors<float>>);

  /// Waits for queued updates, and returns how many updates were not skipped.
  int64_t updates();
  /// Sets the number of updates. Call this after you restore a state, because Adam's bias correction depends on the
  /// number.
  void set_updates(int64_t);

  /// Bytes that the set has allocated from options().allocator.
  int64_t allocated_bytes() const;

  // The members below work on one table. They wait, and no batch may be in progress. Collective: counts and bytes are
  // sums over all ranks (a replicated row is counted once, but its bytes are counted on each rank). Rank 0 receives the
  // rows and removed keys of all ranks; other ranks receive none. Errors: Error(usage) for an unknown name.
  int64_t rows(const std::string& table);
  EmbeddingMemory memory(const std::string& table);
  /// The counts of the row policy by name: rows, rows_evicted, rows_expired, ... Empty without a policy.
  std::map<std::string, int64_t> counts(const std::string& table);
  /// Passes all rows to `sink`, in blocks, by ascending keys. `states` adds the optimizer states.
  void export_rows(const std::string& table, bool states, const std::function<void(const TableRows&)>& sink);
  /// Like export_rows(), for rows that may have changed since note_exported(). Needs marks_changes.
  void export_changed_rows(const std::string& table, bool states, const std::function<void(const TableRows&)>& sink);
  /// The keys whose rows have been removed since note_exported().
  std::vector<int64_t> removed_keys(const std::string& table);
  void note_exported();
  /// Adds rows, or overwrites existing rows. All ranks pass the same rows, and each rank keeps the rows that it owns.
  /// Errors: Error(data) for a duplicate key, a row number that does not exist, or more rows than most_rows.
  void import_rows(const std::string& table, const TableRows&);
  /// Removes the rows of these keys; all ranks pass the same keys. Keys without a row are ignored. Returns the number
  /// of removed rows. Errors: Error(usage) for a table with row numbers, or a table whose rows may be on disk.
  int64_t remove_rows(const std::string& table, std::span<const int64_t> keys);

  /// Writes the complete state to a folder, which must be new or written by save(). Collective: each rank writes its
  /// own rows, so all ranks must be able to access the folder. Errors: Error(io).
  void save(const std::filesystem::path& folder);
  /// Restores the state of a saved set with the same tables. Call it before any batch. The set then continues as the
  /// saved set would have, also on another number of ranks. Collective. Errors: Error(io); Error(data) for other
  /// tables, or a damaged file.
  void load(const std::filesystem::path& folder);

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace hctr
