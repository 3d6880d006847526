// The memory of a table: the hash index and everything kept per row, growing in place between steps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/buffer.h"
#include "device/context.h"
#include "embedding/table_spec.h"
#include "ops/embedding/access_stats.h"
#include "ops/embedding/embedding_rows.h"
#include "ops/embedding/hash_index.h"
#include "ops/embedding/row_removal.h"

namespace hctr {

/// Rows 1 to capacity() can be handed out; row 0 is "no row". Address ranges for all the device's memory are reserved
/// at construction, so growing moves nothing and what is recorded stays valid.
class RowStore {
 public:
  /// `batch_keys`: most keys of one batch; `batches_ahead`: batches the device may have queued when room is asked for.
  RowStore(Runtime&, const TableSpec&, int64_t batch_keys, int batches_ahead);

  const ops::HashIndex& index() const { return index_; }
  /// The index of a table that has every row from the start; nothing where rows come with their keys.
  std::optional<ops::DirectIndex> direct() const { return keys_.empty() ? std::nullopt : std::optional(direct_); }
  /// What is noted of keys outside their ranges, on the device and for the host.
  struct OutOfRangeReport {
    ops::OutOfRangeState* state;
    ops::OutOfRangeKey* host;
  };
  OutOfRangeReport out_of_range(bool evaluation) const {
    return {reinterpret_cast<ops::OutOfRangeState*>(out_of_range_state_.data()) + evaluation,
            reinterpret_cast<ops::OutOfRangeKey*>(out_of_range_keys_.data()) + evaluation};
  }
  /// Errors: Error(data) when the device has told of a key outside its range, in some batch so far. Does not wait.
  void check_keys() const;
  const ops::RowData& data() const { return data_; }
  const ops::RowInit& init() const { return init_; }
  const ops::AccessStats& access_stats() const { return access_stats_; }
  /// Marks go on from those of so many steps before this run's first; modulo 2^32. Waits for queued work.
  void set_steps_before(int64_t steps);
  /// Where index_close_batch tells the host how many rows there are.
  uint64_t* host_word() const { return reinterpret_cast<uint64_t*>(host_word_.data()); }

  /// Room for one more batch, which must then be closed with index_close_batch. Waits only when the rows known to be
  /// free might not do. Errors: Error(data) beyond the row limit; Error(device) when memory is short.
  void reserve_rows();
  /// Once the batch that room was made for is queued on the prepare stream: whether it found room. Waits for it only
  /// when so near the row limit that it may not have. Errors: Error(data) beyond the limit, unless rows leave for that.
  void confirm_capacity() const;
  /// After confirm_capacity(): whether the batch has brought the store beyond its limit, so that rows must leave.
  bool over_limit() const { return near_limit_ && progress().rows > most_kept(); }
  /// Errors: Error(data) when there are more rows than the limit allows, whatever would happen in training. Nothing is
  /// queued.
  void check_limit() const { check_limit(progress()); }
  /// Waits for queued work and returns the rows of finished steps.
  int64_t finished_rows();

  /// The prepared batch in whose favour rows leave: its rows get their new numbers.
  struct BatchRows {
    int32_t* rows = nullptr;  // [count]
    int64_t count = 0;
    int32_t instead = 0;           // of rows that left
    uint64_t* replaced = nullptr;  // on the device: grows by the occurrences of those
  };
  // These wait for queued work, of which nothing may be left but the preparing of `batch`, and return how many rows
  // left (not counting candidates that have become rows elsewhere). The others stay rows 1 to n, under new numbers.
  /// Down to 15/16 of the limit, or to the rows of the batch if these are more: the least used leave.
  int64_t evict(const BatchRows& batch);
  /// Down to the limit: of the rows that the batch brought, those with the highest (slot, key) leave.
  int64_t refuse_newest(const BatchRows& batch);
  /// Rows last seen before this step.
  int64_t expire(int64_t step);
  /// evict() for a store that is only looked at between batches: when more rows than the limit may be there, and are.
  int64_t trim();

  /// Of a store without rows: its rows become those of these keys, 1, 2, ... in their order, with their first values;
  /// slots where rows belong to slots. Waits for queued work. Errors: Error(device) when memory is short.
  void assign_rows(std::span<const int64_t> keys, std::span<const int32_t> slots);

  int64_t capacity() const { return capacity_; }
  /// Every row number is below 2^row_bits(), now and later.
  int row_bits() const;

 private:
  struct Progress {  // what the device last told the host
    uint32_t batches, rows;
  };
  struct Column {  // one array with an element per row
    ReservedBuffer memory;
    int64_t bytes_per_row;
  };
  template <class T>
  T* add_column(bool wanted, int64_t elements_per_row);
  ops::RowMemory add_numbers(DType, int64_t elements_per_row);
  /// The rows of a table without an index. Errors: Error(device) when memory for them is short.
  int64_t all_rows(int64_t bytes_per_row, bool one_of_several) const;
  /// Memory and first values for all of them.
  void allocate_all_rows();
  void add_shared_row(const TableSpec&);
  Progress progress() const;
  Progress wait_for_all();
  void check_limit(const Progress&) const;
  /// Rows that may be handed out: where rows leave for others, a batch comes in before they do.
  int64_t most_rows() const { return row_limit_ > 0 ? row_capacity_limit_ : reserved_rows_; }
  /// Rows that stay, the shared one included.
  int64_t most_kept() const { return row_limit_ + shared_rows(); }
  int64_t shared_rows() const { return index_.first_row - 1; }
  bool rows_may_leave() const { return policy_.when_full != WhenFull::error; }
  using Choose = std::function<void(Context&, const ops::RemovalMemory&, const ops::IndexState&)>;
  int64_t remove_rows(const BatchRows&, const Choose&);
  /// Of candidates, those that are none any more leave in any case. Returns how many.
  int64_t admitted_leave(Context&, const ops::RemovalMemory&, const ops::IndexState&) const;
  ops::IndexState state();
  /// Keys of all batches that may be queued, and one more.
  int64_t ring_keys() const { return (batches_ahead_ + 1) * batch_keys_; }
  /// Calls grow_to with `ample`, or, where memory is too short for that, with `needed`; neither when `have` is enough.
  void grow(int64_t needed, int64_t ample, int64_t have, const std::function<void(int64_t)>& grow_to);
  void grow_rows(int64_t rows);
  /// More places, and every row entered anew. A table pays for this when it grows, and only then.
  void grow_index(int64_t keys);
  template <class T>
  void set_in_state(size_t offset, T value);

  Runtime& runtime_;
  std::string label_;  // "table 'wide' on rank 0"
  DirectKeys keys_;
  int64_t batch_keys_, batches_ahead_, row_limit_;
  int64_t row_capacity_limit_;  // with row_limit_: the most rows that there are for a moment
  RowPolicy policy_;
  std::string limit_setting_;
  int64_t reserved_rows_;    // rows that addresses are reserved for
  int64_t capacity_ = 0;     // rows with memory
  int64_t entry_count_ = 0;  // places of the index
  uint32_t batches_ = 0;     // that room was made for
  bool near_limit_ = false;  // the last of them may bring more rows than the limit allows
  std::vector<Column> columns_;
  ReservedBuffer entries_;
  Buffer state_, slot_bounds_, spans_, out_of_range_state_, steps_before_;
  HostBuffer host_word_, out_of_range_keys_;
  ops::DirectIndex direct_;
  ops::HashIndex index_;
  ops::RowData data_;
  ops::RowInit init_;
  ops::AccessStats access_stats_;
};

}  // namespace hctr
