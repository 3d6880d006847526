// Promotes rows from disk. A table allocates memory for these rows, or evicts other rows.
#include <algorithm>
#include <utility>

#include "core/base/expect.h"
#include "core/device/profiler.h"
#include "engine/tiers/row_tiers.h"

namespace hctr {

void RowTiers::bring_rows(Context& ctx, const ops::KeyBatch& batch, int32_t* rows, NewKeys new_keys) {
  if (!disk_) return;
  std::optional<RowDiskTier::Arrivals> coming = disk_->find_arrivals(ctx, batch, rows, new_keys);
  if (!coming) return;
  if (ranges_ && coming->from_disk.size() < coming->missing.size()) ranges_->check(coming->missing, new_keys);
  const int64_t at_most = index_.progress().rows + disk_->rows_at_end(*coming);
  const bool fits = at_most <= arrays_.capacity() && index_.has_room(at_most);
  if (fits && !disk_->has_work(*coming)) return;

  const ProfiledPart part(runtime_, "wait", "disk");
  // This batch is reserved but not closed. wait_for_all() does not count such a batch, so the code below restores the
  // count.
  const uint32_t batches = index_.reserved_batches();
  const bool adds = new_keys == NewKeys::get_rows;
  if (!runtime_.device().is_cuda()) check_finished(*index_.view().state);
  // Lookups of evaluations are not part of a step, so wait for all queued work if there may be some.
  if (!adds || (!fits && disk_->consume_lookups())) check_finished(index_.state());
  if (!fits) {
    if (at_most > arrays_.capacity()) {
      make_room(*coming, {rows, batch.key_capacity});
      disk_->find_again(*coming);
    }
    const int64_t keys = std::min(index_.progress().rows + disk_->rows_at_end(*coming), arrays_.capacity()) +
                         rows_.batches().ring_keys();
    index_.grow(keys);
    // The index can be rebuilt now, because queued steps do not search the index, and no other work is queued.
    if (!index_.has_room(keys)) index_.build(runtime_.prepare_stream());
  }
  disk_->bring(ctx, *coming);
  index_.set_reserved_batches(batches);
}

void RowTiers::make_room(const RowDiskTier::Arrivals& coming, const RowsOfBatch& batch) {
  const auto rows = [&] { return int64_t{index_.progress().rows}; };
  const int64_t fitting = std::min(account_.rows_in_budget(arrays_.most_rows()), arrays_.most_rows());
  if (fitting > arrays_.capacity()) {
    check_finished(index_.state());
    grow(0, std::clamp(rows() + std::max(coming.count(), arrays_.capacity() / 2), arrays_.capacity(), fitting),
         arrays_.capacity(), [this](int64_t more) { get_memory(more); });
  }
  const auto fits = [&] { return rows() + disk_->rows_at_end(coming) <= arrays_.capacity(); };
  if (fits()) return;
  const int64_t missing = rows() - rows_.free_places().count() + coming.count() - arrays_.capacity();
  const auto leave = [&](RowDiskTier::Stay stay) {
    return disk_->leave(missing, coming.count(), batch.rows, batch.count, stay);
  };
  // Which rows are evicted depends only on the batches, not on the steps that are still queued.
  if (missing > 0 && !leave(RowDiskTier::Stay::recent)) {
    check_finished(index_.state());
    leave(RowDiskTier::Stay::of_batch);
  }
  if (!fits()) close_gaps(batch);  // with admission, new keys use only row numbers at the end, so gaps must be closed
}

void RowTiers::check_finished(const ops::IndexState& now) const {
  HCTR_EXPECT(now.rows == now.finished, arrays_.label(),
              ": the step of the previous batch must be queued before the next batch is looked up");
}

void RowTiers::close_gaps(const RowsOfBatch& batch) {
  check_finished(index_.state());
  rows_.remove(batch, [](Context&, const ops::RemovalMemory&, const ops::IndexState&) {}, *this);
}

int64_t RowTiers::finished_rows() {
  const ops::IndexState now = index_.state();
  if (disk_) disk_->drop_refused_rows();
  return static_cast<int64_t>(now.finished) - index_.shared_rows() - rows_.free_places().count();
}

int64_t RowTiers::close_up() {
  const ops::IndexState now = index_.state();  // waits for queued work
  if (disk_) disk_->drop_refused_rows();
  if (!rows_.free_places().empty())
    rows_.remove(
        {},
        [&](Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState&) {
          // Remove the rows that a refused batch has added, because no finished step uses them.
          const ops::RowRanks ranks{.keys = arrays_.keys(), .slots = arrays_.slots()};
          ops::lowest_rows_leave(ctx, ranks, int64_t{now.finished} + 1, now.rows, int64_t{now.rows} - now.finished,
                                 memory);
        },
        *this);
  return finished_rows();
}

std::shared_ptr<DiskSnapshot> RowTiers::snapshot(const StateWriter& to) {
  if (!disk_ || !to.later() || disk_->disk().rows() == 0) return nullptr;
  budget_.end_snapshots_on_host(nullptr, false);
  budget_.end_snapshots_on_disk(nullptr, false);
  const int64_t most = budget_.has_host() ? std::min(account_.kept_for_map(), budget_.host_room()) : INT64_MAX;
  std::string why_not;
  // On several ranks, training must not wait for the snapshot: the other ranks would wait for this rank, and
  // --comm-timeout limits their wait.
  std::shared_ptr<DiskSnapshot> snapshot = disk_->disk().snapshot(most, several_ranks_, why_not);
  if (!snapshot) to.later()->refused = why_not;
  return snapshot;
}

}  // namespace hctr
