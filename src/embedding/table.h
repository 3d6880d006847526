// One embedding table on one rank: keys in, vectors out, pooled or one by one, gradients back in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/arena.h"
#include "embedding/admission.h"
#include "embedding/row_store.h"
#include "embedding/table_spec.h"
#include "ops/embedding/embedding_group.h"
#include "ops/embedding/embedding_pool.h"

namespace hctr {

/// Rows of a table on the host. Row i has key keys[i], slot slots[i], elements [i * dim, (i + 1) * dim) of `vectors`
/// and likewise, with TableSpec::state_dim(), of each optimizer state. Empty: slots when rows belong to keys alone;
/// states and last_steps when the optimizer has none or they are not asked for or not known; marks where none are kept.
struct RowBlock {
  std::span<const int64_t> keys;
  std::span<const int32_t> slots;
  std::span<const float> vectors;
  std::span<const float> states[ops::kMostStates];
  std::span<const int32_t> last_steps;                   ///< of lazy_global updates
  std::span<const uint32_t> last_seen{}, occurrences{};  ///< AccessStats, of a policy that keeps them
};

/// The training loop passes batches through a ring of slots. For a step with its batch in slot i:
///   reserve_rows(step)           on the host, before prepare(i) is given to the device
///   prepare(i)                  on the prepare stream, while the batch before computes
///   confirm_capacity(i)             on the host, before forward(i) is given to the device
///   enforce_limit(i)            likewise, once every table has confirmed
///   forward(i)                  on the compute stream, after prepare(i)
///   sum_long_runs(i)            on any stream, once the gradients are there
///   update(i)                   on any stream, behind it; then slot i may be prepared again
/// All of these but the host's, and lookup, can be recorded into a Program once and run many times: they
/// allocate nothing, wait for nothing, and the table may grow in between. On the CPU the same calls do the work at
/// once.
class EmbeddingTable {
 public:
  /// Errors: Error(device) when memory is short.
  EmbeddingTable(Runtime&, const TableSpec&, int ring_size);

  /// Makes room for the new rows of one more batch, that of step `step`. Waits for the device only near the end of the
  /// room known to be free, and where rows expire: then they leave here. Errors: Error(data) when there are more rows
  /// than row_limit; Error(device) when memory is short.
  void reserve_rows(int64_t step);
  /// Throws before a step with keys beyond row_limit changes anything; rows and the batches before stay as they are.
  /// Waits for prepare only when the limit is near. Errors: Error(data).
  void confirm_capacity(int buffer) const;
  /// Where the batch has brought the table beyond its limit and rows leave for that: they do, before anybody sees the
  /// others' rows. Waits for queued steps then. Rows leave only while every batch prepared before this one has been
  /// given its update.
  void enforce_limit(int buffer);

  /// Of a table with direct keys: whether the device has come upon one outside its range, in training or evaluation.
  /// Such a key contributed nothing and was not trained. Does not wait; reserve_rows() asks too. Errors: Error(data)
  /// naming slot, key and range.
  void check_keys() const;

  /// Finds or adds the row of every key and sorts them for the backward pass. New rows get their initial values.
  /// Shapes: keys i64 [key_capacity], offsets i32 [slots_of_batch * samples + 1], slot-major.
  void prepare(Context&, int buffer, Tensor keys, Tensor offsets);
  /// Shapes: y [samples, columns, dim], row stride at will; columns: spec().columns(). Dtypes: f32 f16 bf16.
  void forward(Context&, int buffer, Tensor y);
  /// Before update() or sum_row_gradients(), of the same gradients (ops::sum_long_runs). Shapes and dtypes as forward.
  void sum_long_runs(Context&, int buffer, Tensor dy);
  /// One optimizer step on every row of the batch (UpdateType::global: on every row). Shapes and dtypes as forward.
  /// Needs ctx.state(). Ends the step: from now on lookups see the batch's rows.
  void update(Context&, int buffer, Tensor dy);

  /// Evaluation, on the compute stream: keys that no finished step has seen contribute nothing, though they count as
  /// keys of their bag in a mean; in a table with direct keys, what their rows started with. Shapes as prepare and
  /// forward, with eval_samples and eval_key_capacity.
  void lookup(Context&, Tensor keys, Tensor offsets, Tensor y);

  // A step in parts, for rows that every rank has (replicated_rows.h).

  /// What prepare() makes of the batch in a slot, or find() of one for evaluation.
  struct Batch {
    ops::KeyBatch keys;       // addresses of the slot: set by prepare, the same each time
    int32_t* rows = nullptr;  // of each key; 0 for none
    ops::RowGroups groups;    // for training
    uint32_t* rows_after = nullptr;
  };
  const Batch& prepared(int buffer) const;
  Batch find(Context&, Tensor keys, Tensor offsets);
  /// The vectors of either; where `owners` are given, but those that an owner has a key of.
  void pool(Context&, const Batch&, const ops::OwnerVectors* owners, Tensor y) const;
  void pool(Context&, const Batch&, const ops::SampleShards&) const;
  const ops::RowData& data() const { return store_.data(); }
  /// ops::sum_row_gradients of the batch.
  void sum_row_gradients(Context&, int buffer, Tensor dy, Tensor sums);
  /// What update() does once the rows of the batch have their updates.
  void end_step(Context&, int buffer);
  /// Of a table with fixed keys: see RowStore.
  void assign_rows(std::span<const int64_t> keys, std::span<const int32_t> slots) { store_.assign_rows(keys, slots); }

  const TableSpec& spec() const { return spec_; }
  /// Rows as of the last finished step. Waits for queued steps.
  int64_t rows();
  /// What has become of keys and rows under the policy, by the names of summary.json; empty without one. Waits for
  /// queued steps.
  std::map<std::string, int64_t> counts();
  /// Whether keys have used the row that files of models do not hold.
  bool uses_shared_row() const { return admission_ && admission_->used_shared_row(); }

  /// Steps that the marks of rows have counted, those before a model was loaded included.
  int64_t counted_steps() const { return counted_steps_; }
  /// The marks of rows, which are imported, are those of so many steps: the next one is counted on from there, whatever
  /// its own number is.
  void continue_access_stats(int64_t steps);

  /// Gives all rows of finished steps to `sink`, block by block, sorted by (slot, key). Waits for queued steps.
  void export_rows(bool with_states, const std::function<void(const RowBlock&)>& sink);
  /// A row that has come so often.
  struct FrequentRow {
    uint32_t occurrences;
    int32_t slot;  ///< 0 where rows belong to keys alone
    int64_t key;
    int64_t row;
    /// The most frequent first; among equals by (slot, key).
    bool operator<(const FrequentRow& other) const;
  };
  /// At most `most` rows, in order. Needs RowPolicy::finds_frequent. Waits for queued steps.
  std::vector<FrequentRow> most_frequent(int64_t most);
  /// Gives these rows with their states to `sink`, in the order given.
  void export_rows(std::span<const FrequentRow>, const std::function<void(const RowBlock&)>& sink);

  /// Adds rows, or overwrites what the block holds of rows already there; what it does not hold of a new row, vectors
  /// too, starts as in training. Waits for queued steps. Errors: as reserve_rows(); Error(data) when a (slot, key)
  /// occurs twice, a slot does not exist or a direct key lies outside its range.
  void import_rows(const RowBlock&);

 private:
  ops::KeyBatch key_batch(const Tensor& keys, const Tensor& offsets, int64_t samples, int64_t key_capacity) const;
  using RowAt = std::function<std::pair<ops::RowOwner, int32_t>(int64_t)>;
  /// Gives `count` rows to `sink`, block by block; at(i): owner and row of the i-th.
  void emit_rows(int64_t count, const RowAt& at, bool with_states, const std::function<void(const RowBlock&)>& sink);
  /// The rows of keys that need no index; keys outside their ranges are told of.
  void find_directly(Context&, const ops::KeyBatch&, bool evaluation, int32_t* rows);
  void upload_columns(int32_t* of_slot, int32_t* slots);
  void import_chunk(const RowBlock&, std::span<const int64_t> order, Context&);

  Runtime& runtime_;
  const TableSpec spec_;
  RowStore store_;
  std::unique_ptr<Admission> admission_;  // none where every key gets a row
  int64_t evicted_ = 0, expired_ = 0;
  int64_t steps_before_ = 0, counted_steps_ = 0;
  bool stats_continued_ = false;  // and steps_before_ is to be found at the next step
  Arena arena_;
  std::vector<Batch> batches_;
  float* piece_sums_ = nullptr;
  int32_t* eval_rows_ = nullptr;
  ops::OutputColumns columns_of_slots_;
  int32_t* slot_numbers_ = nullptr;
  std::byte* scratch_ = nullptr;
};

}  // namespace hctr
