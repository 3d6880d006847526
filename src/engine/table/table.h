// One embedding table on one rank: looks up the vectors of keys, and updates the vectors with gradients.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/device/arena.h"
#include "engine/spec/table_spec.h"
#include "engine/table/admission.h"
#include "engine/table/batch_memory.h"
#include "engine/table/row_store.h"
#include "engine/table/table_reader.h"
#include "ops/embedding/embedding_group.h"
#include "ops/embedding/embedding_pool.h"

namespace hctr {

/// Rows of a table on the host. Row i has key keys[i], slot slots[i] and elements [i * dim, (i + 1) * dim) of
/// `vectors`. Each optimizer state has TableSpec::state_dim() elements per row. `slots` is empty if rows do not depend
/// on slots. `states` and `last_steps` are empty if the optimizer has none, or if they were not requested. The access
/// statistics are empty if the policy keeps none.
struct RowBlock {
  std::span<const int64_t> keys;
  std::span<const int32_t> slots;
  std::span<const float> vectors;
  std::span<const float> states[ops::kMostStates];
  std::span<const int32_t> last_steps;                   ///< the last_step of each row, for lazy_global updates
  std::span<const uint32_t> last_seen{}, occurrences{};  ///< access statistics, if the policy keeps them
};

/// Selects the rows and fields to export.
struct RowsToExport {
  RowsToExport(bool with_states, bool only_changed = false) : states(with_states), changed(only_changed) {}
  bool states;
  bool changed;  ///< only rows that may have changed since the last model (see RowChanges)
};

/// The owner of a row: (slot, key). The slot is 0 if rows do not depend on slots.
using SlotKey = std::pair<int32_t, int64_t>;

/// For batches with one gradient per key instead of one per bag. The caller has a list of `count` gradients, and
/// of_keys[k], on the device, is the index of key k's gradient in that list. sum_long_runs(), sum_row_gradients() and
/// update() take that list instead of `dy`. Shapes: of_keys [key_capacity], the list [count, 1, dim].
struct KeyGradients {
  const int32_t* of_keys = nullptr;  ///< null: there is one gradient per bag, not per key
  int64_t count = 0;
};

/// Writes the row number of each key to `rows`, instead of a look-up. Writes 0 for a row number above *last_row.
/// Shapes: rows [key_capacity].
using PlaceRows = std::function<void(Context&, const uint32_t* last_row, int32_t* rows)>;

/// The training loop passes batches through a ring of buffers. The calls of a step whose batch is in buffer i:
///   reserve_rows(step)          on the host, before prepare(i) is queued
///   bring_rows(i)               on the host and the prepare stream, before prepare(i), if rows may be on disk
///   prepare(i)                  on the prepare stream, concurrently with the step of the previous batch
///   confirm_capacity(i)         on the host, before forward(i) is queued
///   enforce_limit(i)            on the host, after every table has confirmed its capacity
///   forward(i)                  on the compute stream, after prepare(i)
///   sum_long_runs(i)            on any stream, once the gradients are complete
///   update(i)                   on any stream, after sum_long_runs(i); then buffer i may be prepared again
/// The stream calls except bring_rows(), and lookup() without a disk, can be recorded once in a Program and run many
/// times, because these calls neither allocate nor synchronize, and the table may grow between runs. On a CPU each call
/// returns when its work is done.
class EmbeddingTable {
 public:
  /// Errors: Error(device) if memory runs out.
  EmbeddingTable(Runtime&, const TableSpec&, int ring_size);

  /// Reserves capacity for the new rows of the batch of step `step`, and removes expired rows. Synchronizes only if the
  /// known free capacity may be insufficient, or if rows expire. Errors: Error(data) if there are more rows than
  /// row_limit; Error(device) if memory runs out.
  void reserve_rows(int64_t step);
  /// Allocates the memory that reserve_rows() would need. Runs on the host before reserve_rows(). Changes no row.
  /// Returns whether memory for more rows was allocated. Errors: Error(device).
  bool reserve_memory();
  /// See RowBits::follow_memory() and RowBits::consume_change().
  void sort_bits_in_use() { store_.rows().bits().follow_memory(); }
  bool consume_rerecord_flag() { return store_.rows().bits().consume_change(); }
  /// If TableSpec::most_key_capacity permits growing batches, allocates memory for a batch of `keys` keys in this
  /// buffer. Runs on the host before reserve_rows(). If memory was insufficient, waits for queued work, and the
  /// addresses change. Errors: Error(device).
  void reserve_batch(int buffer, int64_t keys);
  /// Checks that the prepared batch does not exceed row_limit, before its step changes anything. Waits for prepare()
  /// only near the limit. Errors: Error(data); those of RowTiers::bring_rows(). bring_rows() leaves its errors to this
  /// call, because a rank that threw earlier would leave the other ranks waiting in an exchange.
  void confirm_capacity(int buffer) const;
  /// If the prepared batch exceeds the limit, waits for queued steps and evicts or refuses rows. update() of all
  /// earlier prepared batches must be queued. Then queues counts on the prepare stream. If some rows of the table are
  /// in host memory, counts the uses of the batch's rows. If the table has a disk tier, counts the rows of the batch.
  /// prepare() cannot queue these counts, because a table may get its first rows in host memory or on disk after steps
  /// are recorded.
  void enforce_limit(int buffer);

  /// Throws if an earlier training or evaluation batch contained a key outside the range of a table with direct keys.
  /// Such a key contributed nothing and was not trained. Does not synchronize; reserve_rows() checks too. Errors:
  /// Error(data) naming slot, key and range. On several ranks also throws the errors that RowTiers::bring_rows() had in
  /// find(); that batch was evaluated as if its rows did not exist.
  void check_keys() const;
  /// See KeyReports::forget().
  void forget_keys_outside() { store_.key_reports().forget(); }

  /// Whether rows may be on disk.
  bool may_be_on_disk() const { return disk_rows() != nullptr; }
  /// The bytes of rows that were read from the disk device. Thread-safe.
  DiskRows::Fetched disk_fetched() const { return may_be_on_disk() ? disk_rows()->fetched() : DiskRows::Fetched{}; }
  /// Calls RowDiskTier::list_missing(). Call on the host before prepare() of the same batch, with the stream of
  /// prepare().
  bool list_missing(Context&, int buffer, Tensor keys, Tensor offsets);
  /// Calls RowTiers::bring_rows(). Runs on the host after list_missing(). If RowTiers::bring_rows() fails, the batch is
  /// treated as if it had no keys, and confirm_capacity() throws the error. Does nothing if no row can be on disk.
  void bring_rows(Context&, int buffer, Tensor keys, Tensor offsets);
  /// Calls RowDiskTier::look_ahead() with the (key, slot) pairs of upcoming batches. Thread-safe at any time.
  void look_ahead(std::span<const ops::RowOwner> keys) const {
    if (const RowDiskTier* const disk = store_.tiers().disk()) disk->look_ahead(keys);
  }

  /// Looks up or adds the row of every key, and sorts the rows for the backward pass. New rows get initial values.
  /// Shapes: keys i64 [key_capacity], offsets i32 [slots_of_batch * samples + 1], slot-major. If batches may grow, the
  /// tensors have the size of this batch, and later calls of the step must pass tensors with as many samples.
  void prepare(Context&, int buffer, Tensor keys, Tensor offsets, const KeyGradients& gradients = {});
  /// `place_rows` replaces the look-up: it writes rows that an earlier batch has found. If `place_rows` is empty,
  /// prepare() looks up the keys.
  void prepare(Context&, int buffer, Tensor keys, Tensor offsets, const KeyGradients& gradients,
               const PlaceRows& place_rows);
  /// Shapes: y [samples, spec().columns(), dim], any row stride. Dtypes: f32 f16 bf16.
  void forward(Context&, int buffer, Tensor y);
  /// Call before update() or sum_row_gradients() with the same gradients (see ops::sum_long_runs). Shapes and dtypes:
  /// as forward().
  void sum_long_runs(Context&, int buffer, Tensor dy);
  /// Makes one optimizer step on every row of the batch; with UpdateType::global, on every row of the table. Shapes and
  /// dtypes: as forward(). Requires ctx.state(). Ends the step, so that later lookups find the batch's rows.
  void update(Context&, int buffer, Tensor dy);
  /// If `frozen`, later update() calls leave rows and states unchanged. Steps recorded before this call must be
  /// recorded again.
  void freeze(bool frozen) { frozen_ = frozen; }
  bool frozen() const { return frozen_; }

  /// Lookup for evaluation, on the compute stream. If no finished step has seen a key, the key adds nothing to the sum
  /// of its bag, but still counts in the divisor of a mean. In a table with direct keys, such a key adds the initial
  /// values of its row. Shapes: as prepare() and forward(), with eval_samples and eval_key_capacity.
  void lookup(Context&, Tensor keys, Tensor offsets, Tensor y);
  /// If batches grow, allocates memory for find() and lookup() of `keys` keys. Runs on the host. If memory was
  /// insufficient, waits for queued work. Errors: Error(device).
  void reserve_lookup(int64_t keys);
  bool lookup_reserved(int64_t keys) const { return keys <= eval_keys_; }
  /// From now on, if a batch or lookup needs larger buffers, the old buffers are kept, because recorded calls use their
  /// addresses. This call is not recorded: it runs on the host while other calls are recorded.
  void keep_replaced_memory();
  /// Creates a reader, which has lookup() with its own memory, for batches of this size. Any number of readers may run
  /// concurrently, each on its own stream, while the table does not change. The table must outlive the reader. Errors:
  /// Error(config) if rows may be on disk.
  std::unique_ptr<TableReader> reader(Runtime&, int64_t samples, int64_t key_capacity) const;

  // Parts of a step, for sharded and replicated rows.

  /// The result of prepare() for a buffer, or of find() for evaluation.
  struct Batch {
    ops::KeyBatch keys;       // set by prepare(); every call sets the same addresses
    int32_t* rows = nullptr;  // [key]: its row; 0: none
    ops::RowGroups groups;    // set by prepare() only
    // The batch whose gradients `groups` indexes. It equals `keys`, or has one bag for each gradient of a KeyGradients
    // list.
    ops::KeyBatch gradients{};
    uint32_t* rows_after = nullptr;
    std::shared_ptr<BatchMemory> memory{};  // the memory of the buffer
  };
  const Batch& prepared(int buffer) const;
  Batch find(Context&, Tensor keys, Tensor offsets);
  /// Pools the vectors of a prepared or found batch. With `owners`, omits the vectors that owners write. Owners write
  /// the vector of a bag if one of them has a key of the bag.
  void pool(Context&, const Batch&, const ops::OwnerVectors* owners, Tensor y) const;
  void pool(Context&, const Batch&, const ops::SampleShards&) const;
  const ops::RowData& data() const { return arrays().data(); }
  /// Marks of changed rows; null: changes are not marked.
  uint8_t* change_marks() const { return arrays().access_stats().changed; }
  /// Calls ops::sum_row_gradients() for the batch.
  void sum_row_gradients(Context&, int buffer, Tensor dy, Tensor sums);
  /// Lists each row of the batch in unspecified order: its key, and the sum of its gradients. Shapes: keys
  /// [key_capacity], sums [key_capacity, dim], dense. Call after sum_long_runs() with the same gradients.
  void list_row_gradients(Context&, int buffer, Tensor dy, int64_t* keys, Tensor sums);
  /// Replaces update(). Ends the step without changing the rows of the batch.
  void leave_unchanged(Context&, int buffer);
  /// The last part of update(), after the rows of the batch are updated.
  void end_step(Context&, int buffer);
  /// For a table with fixed keys; see RowStore::assign_rows().
  void assign_rows(std::span<const int64_t> keys, std::span<const int32_t> slots) { store_.assign_rows(keys, slots); }

  /// Returns for each key whether it has a row of its own on this rank, as of the last finished step. Always true for
  /// direct keys. Waits for queued steps.
  std::vector<uint8_t> have_rows(std::span<const SlotKey> keys);

  const TableSpec& spec() const { return spec_; }
  /// The number of rows as of the last finished step. Waits for queued steps.
  int64_t rows();
  /// The number of index entries, both used and free; 0 if no index is needed to find keys.
  int64_t index_places() const { return store_.rows().index().entries(); }
  /// The rows of finished steps that are at least partly in host memory, and the bytes of these rows in host memory.
  /// Waits for queued steps.
  HostRows host_rows();
  DeviceBytes device_bytes() const { return store_.tiers().account().device_bytes(); }
  DiskUse disk_use() const { return store_.tiers().disk() ? store_.tiers().disk()->use() : DiskUse{}; }
  /// Counts of evicted, expired and refused rows and keys, under their names in summary.json. Empty without a policy.
  /// Waits for queued steps.
  std::map<std::string, int64_t> counts();
  /// Whether keys have used the shared row, which model files do not contain.
  bool uses_shared_row() const { return admission_ && admission_->used_shared_row(); }

  /// Number of steps that the access statistics cover, including those before a model was loaded.
  int64_t counted_steps() const { return counted_steps_; }
  /// Sets the number of steps that imported access statistics cover. The statistics continue from that number, whatever
  /// the number of the next step.
  void continue_access_stats(int64_t steps);

  /// The bytes of the vectors of all rows with allocated memory, as f32. Includes the optimizer states of these rows if
  /// with_states.
  int64_t bytes_of_rows(bool with_states) const {
    return arrays().capacity() * 4 * (spec_.dim + (with_states ? spec_.optimizer.states() * spec_.state_dim() : 0));
  }
  /// An upper bound of the host memory of the next export_rows(). It counts every row with allocated memory as in use,
  /// rows on disk, and rows gathered from `ranks` ranks.
  int64_t bytes_to_export(bool with_states, int ranks) const;
  /// Maximum device memory of the next export_rows(), for blocks gathered on the device.
  int64_t device_bytes_to_export(bool with_states) const;
  /// Loads the code of the kernels that exports use, because the code needs device memory. Memory for rows must already
  /// be allocated.
  void load_export_kernels();
  /// Passes all rows of finished steps to `sink` in blocks, sorted by (slot, key). Waits for queued steps.
  void export_rows(RowsToExport, const std::function<void(const RowBlock&)>& sink);
  /// Records that a model contains all rows. Later changes are tracked as changes since that model.
  void note_model();
  /// The keys, sorted, whose rows were in the last model and no longer exist. Waits for queued steps.
  std::vector<SlotKey> removed_keys();
  /// A row, and how often its key has occurred.
  struct FrequentRow {
    uint32_t occurrences;
    int32_t slot;  ///< 0 if rows do not depend on slots
    int64_t key;
    int64_t row;  ///< row number; 0: the row is on disk
    /// Sorts by occurrences, descending. Ties are resolved by (slot, key).
    bool operator<(const FrequentRow& other) const;
  };
  /// Returns the most frequent rows, at most `most`, sorted. Requires RowPolicy::finds_frequent. Waits for queued
  /// steps.
  std::vector<FrequentRow> most_frequent(int64_t most);
  /// Passes these rows with their states to `sink` in the given order.
  void export_rows(std::span<const FrequentRow>, const std::function<void(const RowBlock&)>& sink);

  // For checkpoints. No work may be queued.

  /// Saves everything that affects later results.
  void save_state(StateWriter);
  /// Loads the state that the same table on the same rank saved. Rows keep their row numbers. Errors: those of
  /// StateReader.
  void load_state(const StateReader&);
  /// Whether this rank owns the row of a key.
  using Owns = std::function<bool(int64_t key, int32_t slot)>;
  /// Loads from the tables of all ranks of another run the candidates of admission and the state that is not part of
  /// rows. Call after importing rows.
  void load_state_by_key(const std::vector<StateReader>& of_ranks, int rank, const Owns&);

  /// Removes the rows of these keys. Ignores keys without a row. Returns how many rows were removed. Waits for queued
  /// steps. Errors: Error(usage) if keys are row numbers, or if rows may be on disk.
  int64_t remove_rows(std::span<const int64_t> keys);
  /// Adds the rows of the block. If a row exists already, overwrites the fields that the block contains. Fields that a
  /// new row lacks in the block get initial values. Waits for queued steps. Errors: those of reserve_rows();
  /// Error(data) if a (slot, key) occurs twice, a slot does not exist, or a direct key is outside its range.
  void import_rows(const RowBlock&);
  /// Call before importing `rows` rows in any number of calls. If batches add no rows (TableSpec::loads_only), reserves
  /// memory for exactly these rows, as far as memory is available.
  void reserve_import(int64_t rows) {
    if (spec_.loads_only) store_.reserve_import(rows);
  }

 private:
  const RowArrays& arrays() const { return store_.rows().arrays(); }
  const ops::HashIndex& hash_index() const { return store_.rows().index().view(); }
  /// Null: no row can be on disk.
  const DiskRows* disk_rows() const { return store_.tiers().disk() ? &store_.tiers().disk()->disk() : nullptr; }
  ops::KeyBatch key_batch(const Tensor& keys, const Tensor& offsets, int64_t most_samples, int64_t most_keys) const;
  void set_memory(Batch&, int64_t keys);
  /// Reallocates the scratch. Errors: Error(device); an error leaves the previous sizes in use.
  void make_scratch(int64_t batch_keys, int64_t eval_keys);
  /// The owners of the rows of finished steps, sorted.
  std::vector<SlotKey> sorted_keys();
  using RowAt = std::function<std::pair<ops::RowOwner, int32_t>(int64_t)>;
  /// Passes `count` rows to `sink` in blocks. at(i) returns the owner and the row number of row i; row number 0: on
  /// disk.
  void emit_rows(int64_t count, const RowAt& at, bool with_states, const std::function<void(const RowBlock&)>& sink);
  /// Finds rows of direct keys by arithmetic, and reports keys outside their ranges.
  void find_directly(Context&, const ops::KeyBatch&, bool evaluation, int32_t* rows);
  void find_on_host(std::span<const SlotKey> keys, std::span<uint8_t> found);
  void evict_or_refuse(int buffer);
  void upload_columns(int32_t* of_slot, int32_t* slots);
  void import_chunk(const RowBlock&, std::span<const int64_t> order, Context&);
  template <class State>
  void visit_numbers(State&);
  void set_steps_before();

  Runtime& runtime_;
  const TableSpec spec_;
  int64_t batch_keys_, eval_keys_;  // capacities of the scratch
  bool frozen_ = false;
  RowStore store_;
  std::vector<SlotKey> keys_of_model_;    // sorted; set only if rows may be removed
  std::unique_ptr<Admission> admission_;  // null if every key gets a row
  int64_t evicted_ = 0, expired_ = 0;
  int64_t steps_before_ = 0, counted_steps_ = 0;
  bool stats_continued_ = false;  // whether the next step must compute steps_before_
  Arena arena_;
  std::vector<Batch> batches_;
  // not_brought_: error of bring_rows(), thrown by confirm_capacity(); not_found_: error of find(), thrown by
  // check_keys()
  std::optional<Error> not_brought_, not_found_;
  ops::OutputColumns columns_of_slots_;
  int32_t* slot_numbers_ = nullptr;
  std::shared_ptr<BatchScratch> scratch_;
  std::optional<std::vector<std::shared_ptr<void>>> replaced_;  // see keep_replaced_memory()
};

}  // namespace hctr
