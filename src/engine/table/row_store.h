// The row store of a table: combines the rows in memory, the policy that limits rows, and the memory tiers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/policy/store_policy.h"
#include "engine/rows/key_reports.h"
#include "engine/rows/rows_in_memory.h"
#include "engine/tiers/row_tiers.h"

namespace hctr {

/// Reserves memory for the rows of a batch within the policy's limit, in the tiers that have capacity. Kernels access
/// rows(). remove_rows.h removes rows as policy() decides. tiers() places rows on the device, in host memory or on
/// disk. row_store_state.h saves and loads checkpoints.
class RowStore {
 public:
  /// `batch_keys`: maximum keys of one batch. `batches_ahead`: batches that may be queued when reserve_rows() is
  /// called.
  RowStore(Runtime&, const TableSpec&, int64_t batch_keys, int batches_ahead);

  RowsInMemory& rows() { return rows_; }
  const RowsInMemory& rows() const { return rows_; }
  const StorePolicy& policy() const { return policy_; }
  RowTiers& tiers() { return tiers_; }
  const RowTiers& tiers() const { return tiers_; }
  /// Reports keys outside the ranges of a table with direct keys.
  KeyReports& key_reports() { return key_reports_; }
  const KeyReports& key_reports() const { return key_reports_; }

  /// Sets the number of steps that access statistics counted before the first step of this run, modulo 2^32. Waits for
  /// queued work.
  void set_steps_before(int64_t steps);

  /// Reserves capacity for one more batch, which index_close_batch() must close. Synchronizes only if the known free
  /// capacity may be insufficient, or if RowTiers::swap() does. Errors: Error(data) if the row limit is exceeded, or if
  /// an earlier batch contained a key outside its range; Error(device) if memory runs out.
  void reserve_rows();
  /// Allocates the memory that reserve_rows() would need. Changes no row and may be called repeatedly. Returns whether
  /// memory for more rows or keys was allocated. Errors: Error(device).
  bool reserve_memory();
  /// Call before batches import `rows` rows. Allocates exactly the memory for these rows, if it is available.
  void reserve_import(int64_t rows);
  /// Checks that the batch of reserve_rows() stays within the row limit. Call after the batch is queued on the prepare
  /// stream. Waits for the batch only if the limit may be reached. Errors: Error(data) if the limit is exceeded and the
  /// policy removes no rows.
  void confirm_capacity() const;
  /// Whether the batch exceeds the limit, so that rows must be removed. Call after confirm_capacity().
  bool over_limit() const { return policy_.exceeded(counted_now().all()); }
  /// Errors: Error(data) if there are more rows than the limit permits, for any policy. The device must be idle.
  void check_limit() const { policy_.check(counted_now().all()); }

  /// Assigns rows 1, 2, ... of an empty store to these keys in order, with initial values. `slots` is empty if rows do
  /// not depend on slots. Waits for queued work. Errors: Error(device) if memory runs out.
  void assign_rows(std::span<const int64_t> keys, std::span<const int32_t> slots);
  /// Counts the rows in all tiers. `index_rows`: the row count of the index, which includes free row numbers.
  RowCounts counted(int64_t index_rows) const {
    return {index_rows - rows_.free_places().count(), tiers_.disk() ? tiers_.disk()->disk().rows() : 0};
  }

 private:
  RowStore(Runtime&, const TableSpec&, int64_t batch_keys, int batches_ahead, bool on_disk);
  RowCounts counted_now() const { return counted(rows_.index().progress().rows); }
  /// Allocates the initial memory for rows.
  void get_first_memory(const TableSpec&);
  struct Growth {
    int64_t at_most;  ///< maximum rows after the next batch
    bool grew;
  };
  /// Allocates memory for the next batch.
  Growth get_memory();

  Runtime& runtime_;
  std::shared_ptr<RowMemory> own_budget_;  // see TableSpec::memory
  StorePolicy policy_;
  RowsInMemory rows_;
  RowTiers tiers_;
  KeyReports key_reports_;
};

}  // namespace hctr
