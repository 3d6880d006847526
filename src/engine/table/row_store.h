// The memory of a table: the hash index and all arrays with an element per row. It grows between steps, in place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "engine/spec/table_spec.h"
#include "engine/tiers/row_account.h"
#include "engine/tiers/row_arrays.h"
#include "engine/tiers/row_changes.h"
#include "engine/tiers/row_disk_tier.h"
#include "engine/tiers/row_figures.h"
#include "engine/tiers/row_index.h"
#include "engine/tiers/rows_in_use.h"
#include "formats/checkpoint/state_reader.h"
#include "formats/checkpoint/state_writer.h"
#include "ops/embedding/access_stats.h"
#include "ops/embedding/embedding_rows.h"
#include "ops/embedding/hash_index.h"
#include "ops/embedding/row_removal.h"

namespace hctr {

/// Rows 1 to capacity() can be assigned; row 0 is "no row". Address ranges for all memory of the device are reserved at
/// construction, so that growing moves nothing and recorded work stays valid.
///
/// The store decides when rows get memory, are evicted and return, and applies limits. Its parts do the rest: RowArrays
/// hold the rows, RowIndex finds and counts them, RowAccount computes what fits, RowChanges tracks changes, RowDiskTier
/// has the rows on disk, RowsInUse swaps those in host memory, and RowSaver writes them to checkpoints.
class RowStore : private RowMemoryUser {
 public:
  /// `batch_keys`: most keys of one batch; `batches_ahead`: batches that may be queued when reserve_rows() is called.
  RowStore(Runtime&, const TableSpec&, int64_t batch_keys, int batches_ahead);
  ~RowStore() override;
  RowStore(const RowStore&) = delete;
  RowStore& operator=(const RowStore&) = delete;

  const ops::HashIndex& index() const { return index_.view(); }
  /// The index of a table that has every row from the start; none if rows are added with their keys, or may be on disk.
  std::optional<ops::DirectIndex> direct() const {
    return keys_.empty() ? std::nullopt : std::optional(arrays_.data().identity.direct);
  }
  /// Where keys outside their ranges are reported, on the device and to the host.
  struct OutOfRangeReport {
    ops::OutOfRangeState* state;
    ops::OutOfRangeKey* host;
  };
  OutOfRangeReport out_of_range(bool evaluation) const {
    return {reinterpret_cast<ops::OutOfRangeState*>(out_of_range_state_.data()) + evaluation,
            reinterpret_cast<ops::OutOfRangeKey*>(out_of_range_keys_.data()) + evaluation};
  }
  /// Errors: Error(data) if a batch so far held a key outside its range. Does not synchronize.
  void check_keys() const;
  /// Clears the report of check_keys(). Waits for queued work.
  void forget_keys_outside();
  const ops::RowData& data() const { return arrays_.data(); }
  const ops::RowInit& init() const { return arrays_.init(); }
  const ops::AccessStats& access_stats() const { return arrays_.access_stats(); }
  /// Sets the number of steps that access statistics counted before the first step of this run, modulo 2^32. Waits for
  /// queued work.
  void set_steps_before(int64_t steps);
  /// Where index_close_batch reports the number of rows to the host.
  uint64_t* host_word() const { return index_.host_word(); }

  /// Reserves capacity for one more batch, which must then be closed with index_close_batch. Synchronizes only when the
  /// rows known to be free might not be enough. Errors: Error(data) beyond the row limit; Error(device) when memory is
  /// short.
  ///
  /// Swaps rows between host and device memory by their uses, every RowMemoryLimits::move_every calls: update() of all
  /// earlier prepared batches must be queued, and queued work is waited for.
  void reserve_rows();
  /// Sets the step of the batch of the next reserve_rows(), as access statistics count it.
  void begin_step(uint32_t step);
  /// Allocates the memory that reserve_rows() would need, without changing rows; may be called any number of times.
  /// Returns the maximum number of rows after the next batch. Errors: Error(device).
  int64_t reserve_memory();
  /// Before an import of this many rows in batches: allocates exactly the memory that they need, if it is free.
  void reserve_import(int64_t rows);
  /// The most keys of one batch.
  int64_t batch_keys() const { return batch_keys_; }
  /// Calls reserve_memory(). Returns whether it has allocated memory for more rows or keys.
  bool gets_memory() {
    const int64_t before = growths_;
    reserve_memory();
    return growths_ > before;
  }
  /// Checks, once the batch of reserve_rows() is queued on the prepare stream, that it stays within the row limit.
  /// Waits for it only near the limit. Errors: Error(data) beyond the limit, unless rows are removed for that.
  void confirm_capacity() const;
  /// After confirm_capacity(): whether the batch exceeds the limit, so that rows must be removed.
  bool over_limit() const { return near_limit_ && in_all_tiers(index_.progress()) > most_kept(); }
  /// Errors: Error(data) when there are more rows than the limit allows, whatever the policy. Needs an idle device.
  void check_limit() const { check_limit(index_.progress()); }
  /// Waits for queued work and returns the rows of finished steps in memory.
  int64_t finished_rows();
  /// The same; it also moves the last rows to the places of evicted rows, so that numbers are contiguous after the
  /// shared row. No batch may be prepared whose step is not queued.
  int64_t close_up();
  /// Entries of the index for keys, used ones included; 0 if keys are found without an index.
  int64_t index_places() const { return index_.entries(); }

  /// The prepared batch for which rows are removed. Its row numbers are updated.
  struct BatchRows {
    int32_t* rows = nullptr;  // [count]
    int64_t count = 0;
    int32_t instead = 0;           // the row number that replaces removed rows
    uint64_t* replaced = nullptr;  // on the device: incremented for each of those
  };
  // These wait for queued work, which may contain no more than the preparation of `batch`, and return the number of
  // removed rows (without admitted candidates). The remaining rows are renumbered 1 to n.
  /// Evicts the least used rows, down to 15/16 of the limit or to the rows of the batch if these are more.
  int64_t evict(const BatchRows& batch);
  /// Removes new rows of the batch down to the limit, those with the highest (slot, key) first.
  int64_t refuse_newest(const BatchRows& batch);
  /// Removes rows last seen before this step.
  int64_t expire(int64_t step);
  /// evict() if the store has more rows than the limit. For stores that are only trimmed between batches.
  int64_t trim();

  /// Rows on disk, if the budget names a disk: they are not rows of this store until bring_rows() has fetched them.
  /// Null: no disk.
  const DiskRows* disk() const { return tier_ ? &tier_->disk() : nullptr; }
  using NewKeys = hctr::NewKeys;
  /// Called when the step of the batch of bring_rows() is queued: its new rows stay. Otherwise the next request for
  /// rows removes them.
  void keep_new_rows() {
    if (tier_) tier_->keep_new_rows();
  }
  /// Before a batch is looked up, or inserted: fetches the rows of its keys from disk, and evicts others if memory has
  /// no room for them. All earlier steps must be queued. They are waited for only if memory grows, if rows are fetched
  /// for an evaluation or evicted after one, or if only their rows could be evicted. Cannot be recorded, because it
  /// waits for the stream, which must have waited for the last step with the batch's buffer. `rows`: [batch.size()]
  /// scratch. Errors: Error(device) naming the minimum budget if even the batch does not fit in memory; Error(io) if
  /// the disk is full, or a record differs from the one written.
  void bring_rows(Context&, const ops::KeyBatch& batch, int32_t* rows, NewKeys);
  /// Does the part of bring_rows() that needs the stream to be waited for, without waiting: bring_rows() for the same
  /// batch then does not wait. So the host waits once for several tables. Returns whether it has queued work, after
  /// which the stream must be waited for.
  bool list_missing(Context&, const ops::KeyBatch& batch, int32_t* rows);
  /// Any thread, any time: requests the rows of these keys that are on disk from the system, without waiting. `slot`
  /// counts only if rows belong to slots.
  void look_ahead(std::span<const ops::RowOwner> keys) const;
  /// The values of a column of rows on disk, as stored: "vectors", "state0", "last_step", ....
  std::vector<std::byte> disk_rows(std::string_view column, std::span<const DiskRows::Row>) const;
  using DiskUse = hctr::DiskUse;
  /// Adds the number of distinct rows of a training batch to the statistics, after its preparation.
  void count_batch_rows(const ops::GroupCounts* counts) {
    if (tier_) tier_->count_batch_rows(counts);
  }
  DiskUse disk_use() const { return tier_ ? tier_->use() : DiskUse{}; }

  /// Assigns rows 1, 2, ... of an empty store to these keys in their order, with initial values. `slots` is empty if
  /// rows belong to keys alone. Waits for queued work. Errors: Error(device) when memory is short.
  void assign_rows(std::span<const int64_t> keys, std::span<const int32_t> slots);

  // For deltas of models, with nothing queued. A model is whole, or a delta.
  /// Starts to count changes as changes since the last model.
  void start_delta() { changes_.start_delta(own_disk()); }
  /// The rows that may have changed since the last model, ascending; nothing if unknown: all may have changed.
  std::optional<std::vector<int32_t>> changed_since_model();
  /// Whether a row on disk may have changed since the last model, if changed_since_model() knows.
  static bool changed_since_model(const DiskRows::Row& row) { return (row.marks & ops::kChangedSinceModel) != 0; }

  // For checkpoints, with nothing queued.
  /// Saves every assigned row, in the order of row numbers; in an increment, only rows that have changed since its base
  /// or have other numbers there, unless changes are not tracked. A full checkpoint is the next base.
  void save_state(StateWriter&);
  /// Rows have changed other than by batches: all are saved until the next full checkpoint.
  void forget_base() { changes_.forget(); }
  /// Loads the rows of a store with the same spec, with their numbers, and the base of its increments. This store may
  /// have only rows that exist from the start. Errors: those of StateReader; Error(device) when memory is short.
  void load_state(const StateReader&);
  /// Loads only the shared row.
  void load_shared_row(const StateReader&);

  int64_t capacity() const { return arrays_.capacity(); }
  /// Increases the maximum number of keys of a batch, up to TableSpec::most_key_capacity.
  void set_batch_keys(int64_t keys) { batch_keys_ = std::max(batch_keys_, keys); }
  using HostRows = hctr::HostRows;
  /// Of finished steps. Waits for queued work.
  HostRows host_rows();
  hctr::DeviceBytes device_bytes() const { return account_.device_bytes(); }
  using DeviceBytes = hctr::DeviceBytes;
  /// With direct keys, the places of the rows with these numbers: [rows + 1] on the device. Null: rows are at their
  /// numbers.
  const int32_t* places() const { return arrays_.places(); }
  /// The reverse.
  const int32_t* numbers() const { return arrays_.numbers(); }
  /// Counts the uses of the rows of a batch, after its preparation, if some rows are in host memory.
  void count_uses(const ops::RowGroups& groups, int64_t key_capacity) {
    if (uses_) uses_->count(groups, key_capacity);
  }
  /// Every row number is below 2^row_bits(), now and later; after sort_bits_in_use(), until consume_rerecord_flag()
  /// returns true.
  int row_bits() const;
  /// From here on row_bits() follows the number of rows with memory, unless some may be on disk: sorting few rows takes
  /// fewer passes. Only for owners that call consume_rerecord_flag() after each reserve_rows().
  void sort_bits_in_use();
  /// Whether row_bits() has changed since the last call.
  bool consume_rerecord_flag();

 private:
  using Progress = RowIndex::Progress;
  using Column = RowColumn;
  /// The rows of a table without an index. Errors: Error(device) when memory for them is short.
  int64_t all_rows(const TableSpec&) const;
  /// Allocates all rows, with initial values.
  void allocate_all_rows();
  /// The same if memory has no room for all of them: the others go to disk. Errors: Error(io) if they do not fit there
  /// either.
  void create_rows_in_tiers();
  /// Gives rows 1 to `count` the keys of the rows numbered from `first` on in a table that fits in memory.
  void set_owners(int64_t first, int64_t count);
  /// The rows of create_rows_in_tiers() in the order of a table in memory: see RowSaver.
  std::vector<int64_t> order_of_direct_keys(int64_t rows, std::span<const DiskRows::Row> on_disk);
  /// Errors: Error(data) for the first key that has no row.
  void check_ranges(std::span<const ops::MissingKey> missing, NewKeys) const;
  [[noreturn]] void throw_out_of_range(bool evaluation, const std::string& what) const;
  void add_shared_row(const TableSpec&);
  void check_limit(const Progress&) const;
  /// Rows that may be assigned: with eviction, a batch is inserted before rows are removed for it. With a disk, only
  /// rows in memory count.
  int64_t most_rows() const { return row_limit_ > 0 && !on_disk_ ? row_capacity_limit_ : arrays_.most_rows(); }
  /// Rows in memory and on disk: the number that a limit applies to.
  int64_t in_all_tiers(const Progress& now) const { return now.rows - free_rows() + rows_on_disk(); }
  int64_t rows_on_disk() const { return tier_ ? tier_->disk().rows() : 0; }
  DiskRows* own_disk() { return tier_ ? &tier_->disk() : nullptr; }
  /// Places of rows evicted to disk, ascending.
  std::span<const int32_t> free_places() const {
    return tier_ ? tier_->free_places().rows() : std::span<const int32_t>();
  }
  int64_t free_rows() const { return static_cast<int64_t>(free_places().size()); }
  /// Rows that are kept, including the shared one.
  int64_t most_kept() const { return row_limit_ + shared_rows(); }
  int64_t shared_rows() const { return index_.shared_rows(); }
  bool rows_may_leave() const { return policy_.when_full != WhenFull::error; }
  using Choose = std::function<void(Context&, const ops::RemovalMemory&, const ops::IndexState&)>;
  /// Rows evicted to disk are included already; they are not counted.
  int64_t remove_rows(const BatchRows&, const Choose&);
  /// In a store of candidates, selects admitted ones for removal. Returns their number.
  int64_t admitted_leave(Context&, const ops::RemovalMemory&, const ops::IndexState&) const;
  /// The rows that one lookup may need at a time; the shared row is never evicted.
  int64_t rows_at_a_time(const TableSpec&) const;
  /// The maximum number of keys of all queued batches and one more.
  int64_t ring_keys() const { return (batches_ahead_ + 1) * batch_keys_; }
  /// Calls grow_to with `ample`, or with `needed` if memory is too short for that. Does nothing if `have` is enough.
  void grow(int64_t needed, int64_t ample, int64_t have, const std::function<void(int64_t)>& grow_to);
  void grow_rows(int64_t rows);
  /// Frees device memory for this many rows: their numbers, or those of other rows, move to the host. Errors:
  /// Error(device) naming the minimum.
  void make_device_room(int64_t rows, bool moving);
  int64_t move_to_host(int64_t bytes) override;
  int64_t most_to_host() const override;
  /// Starts to count uses of rows, once some have host memory. Errors: Error(device).
  void start_uses(int64_t rows);
  void check_finished(const ops::IndexState&) const;
  /// Allocates memory, or evicts rows to disk, so that these rows fit. Rows of the batch stay.
  void make_room(const RowDiskTier::Arrivals&, const BatchRows& batch);
  /// Moves the last rows to free places.
  void close_gaps(const BatchRows& batch);
  /// Null if rows on disk must be read now.
  std::shared_ptr<DiskSnapshot> snapshot_for_later(const StateWriter&);

  Runtime& runtime_;
  std::shared_ptr<RowMemory> own_budget_;  // see TableSpec::memory
  RowMemory& budget_;
  bool on_disk_;  // rows may be on disk; decided once, because free memory changes
  bool several_ranks_;
  DirectKeys keys_;    // direct keys, found by arithmetic; empty: rows are found by the index
  DirectKeys ranges_;  // direct keys whose rows have an index, because they do not all fit in memory
  int64_t batch_keys_, batches_ahead_;
  bool rows_move_;
  int64_t row_limit_;
  int64_t row_capacity_limit_;  // with row_limit_: the maximum number of rows at any moment
  RowPolicy policy_;
  std::string limit_setting_;
  RowArrays arrays_;
  RowIndex index_;
  RowAccount account_;
  RowChanges changes_;
  bool sorts_bits_in_use_ = false;
  int recorded_bits_ = 0;            // the row_bits() of recorded work
  int64_t growths_ = 0;              // how often memory for rows or keys has grown
  bool near_limit_ = false;          // the last batch with reserved rows may exceed the limit
  std::optional<RowDiskTier> tier_;  // none: no rows on disk
  std::optional<RowsInUse> uses_;    // none: all rows fit, or they do not move
  Buffer spans_, out_of_range_state_;
  HostBuffer out_of_range_keys_;
};

}  // namespace hctr
