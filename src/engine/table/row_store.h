// The rows of a table: joins those in memory, the policy that says which there are, and the tiers that say where.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/policy/store_policy.h"
#include "engine/rows/key_reports.h"
#include "engine/rows/rows_in_memory.h"
#include "engine/tiers/row_tiers.h"

namespace hctr {

/// Does what concerns all three: memory for the rows of a batch, within the limit, where a tier has room. Kernels read
/// rows(); remove_rows.h has them leave as policy() says, tiers() has them on the device, its host or a disk, and
/// row_store_state.h keeps them in checkpoints.
class RowStore {
 public:
  /// `batch_keys`: most keys of one batch; `batches_ahead`: batches that may be queued when reserve_rows() is called.
  RowStore(Runtime&, const TableSpec&, int64_t batch_keys, int batches_ahead);

  RowsInMemory& rows() { return rows_; }
  const RowsInMemory& rows() const { return rows_; }
  const StorePolicy& policy() const { return policy_; }
  RowTiers& tiers() { return tiers_; }
  const RowTiers& tiers() const { return tiers_; }
  /// Keys outside the ranges of a table with direct keys.
  KeyReports& key_reports() { return key_reports_; }
  const KeyReports& key_reports() const { return key_reports_; }

  /// Sets the number of steps that access statistics counted before the first step of this run, modulo 2^32. Waits for
  /// queued work.
  void set_steps_before(int64_t steps);

  /// Reserves capacity for one more batch, which must then be closed with index_close_batch. Synchronizes only when the
  /// rows known to be free might not be enough, and where RowTiers::swap() does. Errors: Error(data) beyond the row
  /// limit, or when a batch so far held a key outside its range; Error(device) when memory is short.
  void reserve_rows();
  /// Does the part of it that needs memory: afterwards reserve_rows() needs none. Changes no row, and may be called any
  /// number of times. Returns whether it has got memory for more rows or keys. Errors: Error(device).
  bool reserve_memory();
  /// Before so many rows come, in batches: gets memory for them and no more, where it is free.
  void reserve_import(int64_t rows);
  /// Checks, once the batch of reserve_rows() is queued on the prepare stream, that it stays within the row limit.
  /// Waits for it only near the limit. Errors: Error(data) beyond the limit, unless rows are removed for that.
  void confirm_capacity() const;
  /// After confirm_capacity(): whether the batch exceeds the limit, so that rows must be removed.
  bool over_limit() const { return policy_.exceeded(counted_now().all()); }
  /// Errors: Error(data) when there are more rows than the limit allows, whatever the policy. Needs an idle device.
  void check_limit() const { policy_.check(counted_now().all()); }

  /// Assigns rows 1, 2, ... of an empty store to these keys in their order, with initial values. `slots` is empty if
  /// rows belong to keys alone. Waits for queued work. Errors: Error(device) when memory is short.
  void assign_rows(std::span<const int64_t> keys, std::span<const int32_t> slots);
  /// Rows in all tiers. `index_rows`: those that the index counts, free places included.
  RowCounts counted(int64_t index_rows) const {
    return {index_rows - rows_.free_places().count(), tiers_.disk() ? tiers_.disk()->disk().rows() : 0};
  }

 private:
  RowStore(Runtime&, const TableSpec&, int64_t batch_keys, int batches_ahead, bool on_disk);
  RowCounts counted_now() const { return counted(rows_.index().progress().rows); }
  /// Memory for the rows that a table begins with.
  void get_first_memory(const TableSpec&);
  struct Growth {
    int64_t at_most;  ///< rows that there can be after the next batch
    bool grew;
  };
  /// For the next batch.
  Growth get_memory();

  Runtime& runtime_;
  std::shared_ptr<RowMemory> own_budget_;  // see TableSpec::memory
  StorePolicy policy_;
  RowsInMemory rows_;
  RowTiers tiers_;
  KeyReports key_reports_;
};

}  // namespace hctr
