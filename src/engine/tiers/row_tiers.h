// The memory tiers of a table's rows: device memory, host memory and disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/device/row_budget.h"
#include "engine/disk/disk_snapshot.h"
#include "engine/disk/row_disk_tier.h"
#include "engine/rows/row_figures.h"
#include "engine/rows/rows_in_memory.h"
#include "engine/tiers/ranges_on_disk.h"
#include "engine/tiers/row_account.h"
#include "engine/tiers/row_changes.h"
#include "engine/tiers/rows_in_use.h"
#include "formats/checkpoint/state_writer.h"

namespace hctr {

/// Allocates memory for rows within the budgets of device and host, moves rows between device and host, evicts rows to
/// disk, and promotes rows from disk. RowAccount computes what fits, RowsInUse swaps rows, and RowDiskTier manages the
/// rows on disk. The policy decides how many rows may exist and which rows are removed.
class RowTiers : private RowMemoryUser, public RowFollower {
 public:
  struct Rules {
    bool on_disk = false;        ///< see may_be_on_disk()
    bool removes_rows = false;   ///< whether a policy removes rows
    bool places_for_new = true;  ///< see RowDiskTier::Rules
  };
  /// `ranges`: direct keys whose rows do not all fit in memory, so that an index finds them. `budget` and the rows must
  /// outlive this object.
  RowTiers(RowMemory& budget, RowsInMemory&, const TableSpec&, DirectKeys ranges, const Rules&);
  ~RowTiers() override;
  RowTiers(const RowTiers&) = delete;
  RowTiers& operator=(const RowTiers&) = delete;

  // Memory.

  /// Allocates memory for `rows` rows. If the device lacks memory, moves vectors and states of this or other tables to
  /// the host. Errors: Error(device) with the required budget.
  void get_memory(int64_t rows);
  /// Does nothing and returns false if `have` is at least `needed` and `ample`. Otherwise calls grow_to(ample) and
  /// returns true. If memory does not suffice for `ample`, calls grow_to(needed), unless `have` is at least `needed`.
  bool grow(int64_t needed, int64_t ample, int64_t have, const std::function<void(int64_t)>& grow_to);
  const RowAccount& account() const { return account_; }

  // Batches.

  /// If some rows are in host memory, every RowMemoryLimits::move_every-th call swaps rows between host and device by
  /// use counts. A swap waits for queued work. Call before rows are reserved for a batch. update() of all batches
  /// prepared before must be queued.
  void swap();
  /// The disk tier; null without a disk. A row on disk does not count as a row in memory until bring_rows() promotes
  /// it.
  RowDiskTier* disk() { return disk_ ? &*disk_ : nullptr; }
  const RowDiskTier* disk() const { return disk_ ? &*disk_ : nullptr; }
  /// Promotes the rows of a batch's keys from disk, and evicts other rows if memory is full. Call before the batch is
  /// looked up or inserted. Before this call, all earlier steps must be queued, and the context's stream must have
  /// waited for the step that last used the batch's buffer. This call waits for the stream and cannot be recorded. It
  /// waits for all queued steps only if memory grows, if an evaluation promotes rows or ran before an eviction, or if
  /// only rows of queued steps could be evicted. `rows`: scratch [batch.size()]. Errors: Error(device) with the
  /// required budget if memory cannot hold the batch; Error(io) if the disk is full, or a row on disk differs from what
  /// was written.
  void bring_rows(Context&, const ops::KeyBatch& batch, int32_t* rows, NewKeys);
  /// Call after the preparation of a training batch is queued. If some rows of the table are in host memory, counts how
  /// often the batch uses each of its rows. If the table has a disk tier, counts the rows of the batch.
  void count_batch(const ops::RowGroups&, int64_t key_capacity);

  /// Waits for queued work, and returns the number of rows of finished steps in memory.
  int64_t finished_rows();
  /// Like finished_rows(), but first moves the last rows to free row numbers. After the call, the row numbers are
  /// contiguous and start after the shared row. The step of every prepared batch must be queued.
  int64_t close_up();
  /// Rows of finished steps in host memory. Waits for queued work.
  HostRows host_rows();

  // For checkpoints and models. No work may be queued.
  RowChanges& changes() { return changes_; }
  /// The direct keys of a table with rows on disk; null: the table has none.
  RangesOnDisk* ranges() { return ranges_ ? &*ranges_ : nullptr; }
  /// Call before the rows of a checkpoint are loaded. Removes rows of direct keys from disk, and resets places() to the
  /// row numbers.
  void start_over();
  /// A snapshot from which a thread can read the rows on disk later. Null: the rows must be read now.
  std::shared_ptr<DiskSnapshot> snapshot(const StateWriter&);

  void follow(Context&, const ops::RowMoves&, int64_t rows) override;

 private:
  /// Frees device memory for `rows` rows by moving vectors and states of this or other tables to the host. Errors:
  /// Error(device) with the required budget.
  void make_device_room(int64_t rows, bool moving);
  int64_t move_to_host(int64_t bytes) override;
  int64_t most_to_host() const override;
  /// Starts counting row accesses once any row is in host memory. Errors: Error(device).
  void start_uses(int64_t rows);
  void check_finished(const ops::IndexState&) const;
  /// Allocates memory or evicts rows, so that the arrivals fit. Rows of the batch are not evicted.
  void make_room(const RowDiskTier::Arrivals&, const RowsOfBatch&);
  /// Moves the last rows to free row numbers.
  void close_gaps(const RowsOfBatch&);

  RowMemory& budget_;
  RowsInMemory& rows_;
  RowArrays& arrays_;
  RowIndex& index_;
  Runtime& runtime_;
  const bool rows_move_, several_ranks_;
  RowAccount account_;
  RowChanges changes_;
  std::optional<RowDiskTier> disk_;     // nullopt: no rows on disk
  std::optional<RangesOnDisk> ranges_;  // nullopt: keys are not direct, or all rows fit in memory
  std::optional<RowsInUse> uses_;       // nullopt: all rows are on the device, or rows do not move
};

}  // namespace hctr
