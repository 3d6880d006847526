// One embedding table on one rank: looks up the vectors of keys, and updates them with their gradients.
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

/// Rows of a table on the host. Row i has key keys[i], slot slots[i], elements [i * dim, (i + 1) * dim) of `vectors`;
/// the same holds for each optimizer state with TableSpec::state_dim(). May be empty: slots, if rows belong to keys
/// alone; states and last_steps, if the optimizer has none or they were not requested; access statistics, if none are
/// kept.
struct RowBlock {
  std::span<const int64_t> keys;
  std::span<const int32_t> slots;
  std::span<const float> vectors;
  std::span<const float> states[ops::kMostStates];
  std::span<const int32_t> last_steps;                   ///< of lazy_global updates
  std::span<const uint32_t> last_seen{}, occurrences{};  ///< access statistics, of a policy that keeps them
};

/// Selects rows and fields to export.
struct RowsToExport {
  RowsToExport(bool with_states, bool only_changed = false) : states(with_states), changed(only_changed) {}
  bool states;
  bool changed;  ///< those alone that may have changed since the last model, as RowChanges knows it
};

/// The owner of a row: (slot, key); the slot is 0 if rows belong to keys alone.
using SlotKey = std::pair<int32_t, int64_t>;

/// Used where keys of one bag have different gradients. of_keys[k], in memory of the device, is the index of key k's
/// gradient in a list of `count`. sum_long_runs(), sum_row_gradients() and update() take that list in place of `dy`.
/// Shapes: of_keys [key_capacity], the list [count, 1, dim].
struct KeyGradients {
  const int32_t* of_keys = nullptr;  ///< null: gradients of bags
  int64_t count = 0;
};

/// The training loop passes batches through a ring of buffers. For a step with its batch in buffer i:
///   reserve_rows(step)           on the host, before prepare(i) is queued
///   bring_rows(i)               the same, if rows may be on disk, on the prepare stream
///   prepare(i)                  on the prepare stream, concurrently with the step of the previous batch
///   confirm_capacity(i)             on the host, before forward(i) is queued
///   enforce_limit(i)            the same, once every table has confirmed
///   forward(i)                  on the compute stream, after prepare(i)
///   sum_long_runs(i)            on any stream, once the gradients are complete
///   update(i)                   on any stream, after that; then buffer i may be prepared again
/// The calls on streams except bring_rows, and lookup without a disk, can be recorded into a Program once and run many
/// times: they do not allocate or synchronize, and the table may grow between runs. On a CPU they return when their
/// work is done.
class EmbeddingTable {
 public:
  /// Errors: Error(device) when memory is short.
  EmbeddingTable(Runtime&, const TableSpec&, int ring_size);

  /// Reserves capacity for the new rows of the batch of step `step`, and removes rows that have expired. Synchronizes
  /// only when the rows known to be free might not be enough, and when rows expire. Errors: Error(data) when there are
  /// more rows than row_limit; Error(device) when memory is short.
  void reserve_rows(int64_t step);
  /// Host, before reserve_rows(): allocates the memory that it would need; the step then needs none. Changes no row.
  /// Returns whether it has allocated memory for more rows. Errors: Error(device).
  bool reserve_memory();
  /// See RowBits.
  void sort_bits_in_use() { store_.rows().bits().follow_memory(); }
  bool consume_rerecord_flag() { return store_.rows().bits().consume_change(); }
  /// Host, before reserve_rows(): memory for a batch of so many keys in this buffer, where TableSpec::most_key_capacity
  /// lets batches grow. Waits for queued work and takes other addresses if there was not enough. Errors: Error(device).
  void reserve_batch(int buffer, int64_t keys);
  /// Checks that the prepared batch does not exceed row_limit, before its step changes anything. Waits for prepare()
  /// only when the limit is near. Errors: Error(data); those of RowTiers::bring_rows() in bring_rows(), which come here
  /// since ranks that exchange more in between would wait for one that has thrown.
  void confirm_capacity(int buffer) const;
  /// Evicts or rejects rows if the prepared batch exceeds the limit, and then waits for queued steps. update() of all
  /// earlier prepared batches must be queued. Then counts, on the prepare stream, the uses of the batch's rows if some
  /// rows are in host memory, and its rows if some are on disk; prepare() cannot, because a table may get such rows
  /// after steps are recorded.
  void enforce_limit(int buffer);

  /// Throws if a batch so far, in training or evaluation, held a key outside the range of a table with direct keys.
  /// Such a key contributed nothing and was not trained. Does not synchronize; reserve_rows() checks too. Errors:
  /// Error(data) naming slot, key and range; on several ranks those of RowTiers::bring_rows() in find(), after which
  /// the rows of a batch count as missing.
  void check_keys() const;
  /// KeyReports::forget().
  void forget_keys_outside() { store_.key_reports().forget(); }

  /// Whether rows may be on a disk.
  bool may_be_on_disk() const { return disk_rows() != nullptr; }
  /// Any thread: bytes of rows that came from the disk itself.
  DiskRows::Fetched disk_fetched() const { return may_be_on_disk() ? disk_rows()->fetched() : DiskRows::Fetched{}; }
  /// Host, on the stream of prepare() and before it, for the same batch: RowDiskTier::list_missing().
  bool list_missing(Context&, int buffer, Tensor keys, Tensor offsets);
  /// Host, then: RowTiers::bring_rows(). Where that fails, the batch has no keys from then on, and confirm_capacity()
  /// throws the error. Does nothing where no rows can be on a disk.
  void bring_rows(Context&, int buffer, Tensor keys, Tensor offsets);
  /// Any thread, any time: keys that batches will have, with their slots. RowDiskTier::look_ahead().
  void look_ahead(std::span<const ops::RowOwner> keys) const {
    if (const RowDiskTier* const disk = store_.tiers().disk()) disk->look_ahead(keys);
  }

  /// Finds or adds the row of every key and sorts them for the backward pass. New rows get their initial values.
  /// Shapes: keys i64 [key_capacity], offsets i32 [slots_of_batch * samples + 1], slot-major; if batches grow, keys and
  /// samples are those of the batch, and every later call takes tensors with its samples.
  void prepare(Context&, int buffer, Tensor keys, Tensor offsets, const KeyGradients& gradients = {});
  /// Shapes: y [samples, columns, dim], any row stride; columns: spec().columns(). Dtypes: f32 f16 bf16.
  void forward(Context&, int buffer, Tensor y);
  /// Before update() or sum_row_gradients(), of the same gradients (ops::sum_long_runs). Shapes and dtypes as forward.
  void sum_long_runs(Context&, int buffer, Tensor dy);
  /// One optimizer step on every row of the batch (UpdateType::global: on every row). Shapes and dtypes as forward.
  /// Needs ctx.state(). Ends the step: from now on lookups see the batch's rows.
  void update(Context&, int buffer, Tensor dy);
  /// Whether update() leaves rows and states unchanged from now on. Recorded steps must be recorded again.
  void freeze(bool frozen) { frozen_ = frozen; }
  bool frozen() const { return frozen_; }

  /// Evaluation, on the compute stream. Keys that no finished step has seen contribute nothing, but count as keys of
  /// their bag in a mean; with direct keys they contribute the initial values of their rows. Shapes as prepare and
  /// forward, with eval_samples and eval_key_capacity.
  void lookup(Context&, Tensor keys, Tensor offsets, Tensor y);
  /// Host: allocates memory for find() and lookup() of this many keys, if batches grow. Waits for queued work if there
  /// was not enough. Errors: Error(device).
  void reserve_lookup(int64_t keys);
  bool lookup_reserved(int64_t keys) const { return keys <= eval_keys_; }
  /// Host, if calls are recorded: from now on, memory that growing batches and look-ups replace is kept, because
  /// recorded calls point to it.
  void keep_replaced_memory();
  /// lookup() with its own memory, for batches of this size: any number of readers may run concurrently, each on its
  /// own stream, while the table does not change. The table must outlive it. Errors: Error(config) if rows may be on
  /// disk.
  std::unique_ptr<TableReader> reader(Runtime&, int64_t samples, int64_t key_capacity) const;

  // The parts of a step, for sharded and replicated rows.

  /// The result of prepare() for a buffer, or of find() for evaluation.
  struct Batch {
    ops::KeyBatch keys;       // set by prepare to the same addresses each time
    int32_t* rows = nullptr;  // row of each key; 0: none
    ops::RowGroups groups;    // for training
    // the batch of the gradients that `groups` numbers: `keys`, or one bag per gradient of a list
    ops::KeyBatch gradients{};
    uint32_t* rows_after = nullptr;
    std::shared_ptr<BatchMemory> memory{};  // memory of the buffer
  };
  const Batch& prepared(int buffer) const;
  Batch find(Context&, Tensor keys, Tensor offsets);
  /// Pools the vectors of either. With `owners`, vectors of which an owner has a key are not written.
  void pool(Context&, const Batch&, const ops::OwnerVectors* owners, Tensor y) const;
  void pool(Context&, const Batch&, const ops::SampleShards&) const;
  const ops::RowData& data() const { return arrays().data(); }
  /// Marks of the rows that have changed; null: they are not kept.
  uint8_t* change_marks() const { return arrays().access_stats().changed; }
  /// ops::sum_row_gradients of the batch.
  void sum_row_gradients(Context&, int buffer, Tensor dy, Tensor sums);
  /// The key of each row of the batch, and the sum of its gradients, in any order. Shapes: keys [key_capacity], sums
  /// [key_capacity, dim], dense. After sum_long_runs() of the same gradients.
  void list_row_gradients(Context&, int buffer, Tensor dy, int64_t* keys, Tensor sums);
  /// Instead of update(): ends the step without changing the rows of the batch.
  void leave_unchanged(Context&, int buffer);
  /// The part of update() after the updates of the batch's rows.
  void end_step(Context&, int buffer);
  /// For a table with fixed keys: see RowStore.
  void assign_rows(std::span<const int64_t> keys, std::span<const int32_t> slots) { store_.assign_rows(keys, slots); }

  /// Whether each of these keys has its own row here, as of the last finished step; with direct keys all have. Waits
  /// for queued steps.
  std::vector<uint8_t> have_rows(std::span<const SlotKey> keys);

  const TableSpec& spec() const { return spec_; }
  /// Rows as of the last finished step. Waits for queued steps.
  int64_t rows();
  /// Keys that the index has places for, those in use included; 0 where keys are found without it.
  int64_t index_places() const { return store_.rows().index().entries(); }
  /// Rows of finished steps that are in host memory, at least in part, and their bytes there. Waits for queued steps.
  HostRows host_rows();
  DeviceBytes device_bytes() const { return store_.tiers().account().device_bytes(); }
  DiskUse disk_use() const { return store_.tiers().disk() ? store_.tiers().disk()->use() : DiskUse{}; }
  /// Counts of evicted, expired and refused rows and keys, by the names of summary.json; empty without a policy. Waits
  /// for queued steps.
  std::map<std::string, int64_t> counts();
  /// Whether keys have used the shared row, which model files do not hold.
  bool uses_shared_row() const { return admission_ && admission_->used_shared_row(); }

  /// Steps that the access statistics have counted, including those before a model was loaded.
  int64_t counted_steps() const { return counted_steps_; }
  /// Sets the number of steps that imported access statistics have counted. The next step continues from there,
  /// whatever its own number.
  void continue_access_stats(int64_t steps);

  /// Bytes of vectors, and of states if requested, in fp32, for all rows that have memory.
  int64_t bytes_of_rows(bool with_states) const {
    return arrays().capacity() * 4 * (spec_.dim + (with_states ? spec_.optimizer.states() * spec_.state_dim() : 0));
  }
  /// Maximum host memory of the next export_rows(), for all rows that have memory, including the gathering of rows from
  /// this many ranks.
  int64_t bytes_to_export(bool with_states, int ranks) const;
  /// The same for device memory, for blocks gathered there.
  int64_t device_bytes_to_export(bool with_states) const;
  /// Loads the code of the kernels that exports run, which takes device memory. Rows must have memory.
  void load_export_kernels();
  /// Passes all rows of finished steps to `sink` in blocks, sorted by (slot, key). Waits for queued steps.
  void export_rows(RowsToExport, const std::function<void(const RowBlock&)>& sink);
  /// All rows are in a model now: later changes are changes since it.
  void note_model();
  /// The keys with rows in the last model that no longer exist, sorted. Waits for queued steps.
  std::vector<SlotKey> removed_keys();
  /// A row and how often its key has occurred.
  struct FrequentRow {
    uint32_t occurrences;
    int32_t slot;  ///< 0 if rows belong to keys alone
    int64_t key;
    int64_t row;  ///< 0: it is on disk
    /// Orders by occurrences, descending; ties by (slot, key).
    bool operator<(const FrequentRow& other) const;
  };
  /// At most `most` rows, in order. Needs RowPolicy::finds_frequent. Waits for queued steps.
  std::vector<FrequentRow> most_frequent(int64_t most);
  /// Passes these rows with their states to `sink`, in the given order.
  void export_rows(std::span<const FrequentRow>, const std::function<void(const RowBlock&)>& sink);

  // For checkpoints, with nothing queued.
  /// Saves everything that affects later results.
  void save_state(StateWriter);
  /// Loads the state of the same table of the same rank: rows keep their numbers. Errors: those of StateReader.
  void load_state(const StateReader&);
  /// Whether this rank holds the row of a key.
  using Owns = std::function<bool(int64_t key, int32_t slot)>;
  /// Loads the state that belongs to no row, and the candidates of admission, from the tables of the ranks of another
  /// run. Import rows first.
  void load_state_by_key(const std::vector<StateReader>& of_ranks, int rank, const Owns&);

  /// Removes the rows of these keys; those without one are left out. Returns how many rows that were. Waits for queued
  /// steps. Errors: Error(usage) where keys are row numbers, or rows may be on a disk.
  int64_t remove_rows(std::span<const int64_t> keys);
  /// Adds rows, or overwrites the fields of existing rows that the block has. Fields of new rows that the block lacks
  /// get their initial values. Waits for queued steps. Errors: as reserve_rows(); Error(data) when a (slot, key) occurs
  /// twice, a slot does not exist or a direct key lies outside its range.
  void import_rows(const RowBlock&);
  /// Before an import of this many rows, in any number of calls: reserves memory for exactly these, if it is free and
  /// batches add none (TableSpec::loads_only).
  void reserve_import(int64_t rows) {
    if (spec_.loads_only) store_.reserve_import(rows);
  }

 private:
  const RowArrays& arrays() const { return store_.rows().arrays(); }
  const ops::HashIndex& hash_index() const { return store_.rows().index().view(); }
  /// Null: no row can be on a disk.
  const DiskRows* disk_rows() const { return store_.tiers().disk() ? &store_.tiers().disk()->disk() : nullptr; }
  ops::KeyBatch key_batch(const Tensor& keys, const Tensor& offsets, int64_t most_samples, int64_t most_keys) const;
  void set_memory(Batch&, int64_t keys);
  /// Errors: Error(device); the previous scratch is then kept.
  void make_scratch(int64_t batch_keys, int64_t eval_keys);
  /// Of the rows of finished steps.
  std::vector<SlotKey> sorted_keys();
  using RowAt = std::function<std::pair<ops::RowOwner, int32_t>(int64_t)>;
  /// Passes `count` rows to `sink` in blocks; at(i): owner and row of the i-th; row 0: it is on disk.
  void emit_rows(int64_t count, const RowAt& at, bool with_states, const std::function<void(const RowBlock&)>& sink);
  /// Finds rows by direct index, and reports keys outside their ranges.
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
  int64_t batch_keys_, eval_keys_;  // capacity of scratch and store
  bool frozen_ = false;
  RowStore store_;
  std::vector<SlotKey> keys_of_model_;    // sorted; only if rows may be removed
  std::unique_ptr<Admission> admission_;  // none if every key gets a row
  int64_t evicted_ = 0, expired_ = 0;
  int64_t steps_before_ = 0, counted_steps_ = 0;
  bool stats_continued_ = false;  // steps_before_ is computed at the next step
  Arena arena_;
  std::vector<Batch> batches_;
  // errors of bring_rows() and find(), see confirm_capacity() and check_keys()
  std::optional<Error> not_brought_, not_found_;
  ops::OutputColumns columns_of_slots_;
  int32_t* slot_numbers_ = nullptr;
  std::shared_ptr<BatchScratch> scratch_;
  std::optional<std::vector<std::shared_ptr<void>>> replaced_;  // see keep_replaced_memory()
};

}  // namespace hctr
