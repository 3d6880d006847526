// Where the rows of a table are: on a device, in memory of its host, or on a disk.
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

/// Gives rows memory within the budgets of a device and its host, moves them between these, and has them leave for a
/// disk and come back. RowAccount computes what fits, RowsInUse swaps rows, RowDiskTier has those on the disk. How many
/// rows there may be, and which of them are removed, is a policy's business.
class RowTiers : private RowMemoryUser, public RowFollower {
 public:
  struct Rules {
    bool on_disk = false;        ///< see may_be_on_disk()
    bool removes_rows = false;   ///< a policy does
    bool places_for_new = true;  ///< see RowDiskTier::Rules
  };
  /// `ranges`: direct keys whose rows have an index, since memory has no room for all of them. Budget and rows outlive
  /// it.
  RowTiers(RowMemory& budget, RowsInMemory&, const TableSpec&, DirectKeys ranges, const Rules&);
  ~RowTiers() override;
  RowTiers(const RowTiers&) = delete;
  RowTiers& operator=(const RowTiers&) = delete;

  // Memory.
  /// Gets it for `rows` rows: their numbers, or others, move to the host where the device has no room. Errors:
  /// Error(device) naming the least budget.
  void get_memory(int64_t rows);
  /// Calls grow_to with `ample`, or with `needed` if memory is too short for that. Does nothing if `have` is enough;
  /// returns whether it is not.
  bool grow(int64_t needed, int64_t ample, int64_t have, const std::function<void(int64_t)>& grow_to);
  const RowAccount& account() const { return account_; }

  // Batches.
  /// Before rows are reserved for one: where some are in host memory, they change places by how often they are used,
  /// every RowMemoryLimits::move_every calls. All batches prepared before must have had their update() queued then, and
  /// queued work is waited for.
  void swap();
  /// Rows that no memory has room for; null: there is no disk. They are not among the rows in memory until bring_rows()
  /// has brought them back.
  RowDiskTier* disk() { return disk_ ? &*disk_ : nullptr; }
  const RowDiskTier* disk() const { return disk_ ? &*disk_ : nullptr; }
  /// Before a batch is looked up, and inserted where its new keys get rows: brings the rows of its keys from the disk,
  /// and has others leave if memory has no room for them. Every step before must be queued; they are waited for only
  /// where memory grows, rows come for an evaluation or leave after one, or no others than theirs could leave. The
  /// stream, which has waited for the step that had the buffer of the batch before, is waited for, so this cannot be
  /// recorded. `rows`: [batch.size()] scratch. Errors: Error(device) naming the least budget when memory has not even
  /// room for the batch; Error(io) when the disk is full, or a row there is not what was written.
  void bring_rows(Context&, const ops::KeyBatch& batch, int32_t* rows, NewKeys);
  /// Behind the preparation of a training batch: counts the uses of its rows, if some rows are in host memory, and the
  /// rows, if some are on a disk.
  void count_batch(const ops::RowGroups&, int64_t key_capacity);

  /// Waits for queued work and returns the rows of finished steps in memory.
  int64_t finished_rows();
  /// The same, and has the last of them move to the places that others have left for the disk: they have the numbers
  /// behind the shared row then. No batch may be prepared whose step is not queued.
  int64_t close_up();
  /// Rows of finished steps that are in host memory. Waits for queued work.
  HostRows host_rows();

  // For checkpoints and models, with nothing queued.
  RowChanges& changes() { return changes_; }
  /// Direct keys with rows on the disk; null: there are none.
  RangesOnDisk* ranges() { return ranges_ ? &*ranges_ : nullptr; }
  /// Before the rows of a checkpoint are taken: no row of direct keys is on the disk, and those in memory are at their
  /// numbers.
  void start_over();
  /// The rows on the disk as they are now, for a thread that reads them later; null where they must be read now.
  std::shared_ptr<DiskSnapshot> snapshot(const StateWriter&);

  void follow(Context&, const ops::RowMoves&, int64_t rows) override;

 private:
  /// Makes room for what so many rows need on the device: their numbers, or others, move to the host. Errors:
  /// Error(device) naming the least.
  void make_device_room(int64_t rows, bool moving);
  int64_t move_to_host(int64_t bytes) override;
  int64_t most_to_host() const override;
  /// From here on uses of rows are counted, once some have memory of the host. Errors: Error(device).
  void start_uses(int64_t rows);
  void check_finished(const ops::IndexState&) const;
  /// Gets memory, or has rows leave for the disk, so that these fit. Rows of the batch stay.
  void make_room(const RowDiskTier::Arrivals&, const RowsOfBatch&);
  /// Moves the last rows to free places.
  void close_gaps(const RowsOfBatch&);

  RowMemory& budget_;
  RowsInMemory& rows_;
  RowArrays& arrays_;
  RowIndex& index_;
  Runtime& runtime_;
  const bool rows_move_, several_ranks_;
  RowAccount account_;
  RowChanges changes_;
  std::optional<RowDiskTier> disk_;     // none: no rows on a disk
  std::optional<RangesOnDisk> ranges_;  // none: rows come with their keys, or all fit
  std::optional<RowsInUse> uses_;       // none: all rows fit, or they do not move
};

}  // namespace hctr
