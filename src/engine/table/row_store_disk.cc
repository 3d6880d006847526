// A store with rows on disk: allocates memory for rows that return, or evicts others.
#include <algorithm>

#include "core/device/profiler.h"
#include "engine/table/row_store.h"

namespace hctr {

void RowStore::begin_step(uint32_t step) {
  if (tier_) tier_->begin_step(step);
}

bool RowStore::list_missing(Context& ctx, const ops::KeyBatch& batch, int32_t* rows) {
  return tier_ && tier_->list_missing(ctx, batch, rows);
}

void RowStore::bring_rows(Context& ctx, const ops::KeyBatch& batch, int32_t* rows, NewKeys new_keys) {
  if (!tier_) return;
  std::optional<RowDiskTier::Arrivals> coming = tier_->find_arrivals(ctx, batch, rows, new_keys);
  if (!coming) return;
  if (!ranges_.empty() && coming->from_disk.size() < coming->missing.size()) check_ranges(coming->missing, new_keys);
  const int64_t at_most = index_.progress().rows + tier_->rows_at_end(*coming);
  const bool fits = at_most <= arrays_.capacity() && index_.has_room(at_most);
  if (fits && !tier_->has_work(*coming)) return;

  const ProfiledPart part(runtime_, "wait", "disk");
  // The batch is reserved but not closed; waiting must not expect it.
  const uint32_t batches = index_.reserved_batches();
  const bool adds = new_keys == NewKeys::get_rows;
  if (!runtime_.device().is_cuda()) check_finished(*index_.view().state);
  // Rows fetched for evaluations belong to no step.
  if (!adds || (!fits && tier_->consume_lookups())) check_finished(index_.state());
  if (!fits) {
    if (at_most > arrays_.capacity()) {
      make_room(*coming, {rows, batch.key_capacity});
      tier_->find_again(*coming);
    }
    const int64_t keys =
        std::min(index_.progress().rows + tier_->rows_at_end(*coming), arrays_.capacity()) + ring_keys();
    index_.grow(keys);
    // Queued steps do not search the index, and nothing else is queued.
    if (!index_.has_room(keys)) index_.build(runtime_.prepare_stream());
  }
  tier_->bring(ctx, *coming);
  index_.set_reserved_batches(batches);
}

void RowStore::make_room(const RowDiskTier::Arrivals& coming, const BatchRows& batch) {
  const auto rows = [&] { return int64_t{index_.progress().rows}; };
  const int64_t fitting = std::min(account_.rows_in_budget(most_rows()), most_rows());
  if (fitting > arrays_.capacity()) {
    check_finished(index_.state());
    grow(0, std::clamp(rows() + std::max(coming.count(), arrays_.capacity() / 2), arrays_.capacity(), fitting),
         arrays_.capacity(), [this](int64_t more) { grow_rows(more); });
  }
  const auto fits = [&] { return rows() + tier_->rows_at_end(coming) <= arrays_.capacity(); };
  if (fits()) return;
  const int64_t missing = rows() - free_rows() + coming.count() - arrays_.capacity();
  const auto leave = [&](RowDiskTier::Stay stay) {
    return tier_->leave(missing, coming.count(), batch.rows, batch.count, stay);
  };
  // The choice of evicted rows depends only on the batches, not on what is still queued.
  if (missing > 0 && !leave(RowDiskTier::Stay::recent)) {
    check_finished(index_.state());
    leave(RowDiskTier::Stay::of_batch);
  }
  if (!fits()) close_gaps(batch);  // with an admission gate, new keys get rows only at the end
}

void RowStore::check_finished(const ops::IndexState& now) const {
  HCTR_EXPECT(now.rows == now.finished, arrays_.label(),
              ": a batch is looked up before the step of the one before is queued");
}

void RowStore::look_ahead(std::span<const ops::RowOwner> keys) const {
  if (!tier_) return;
  std::vector<ops::RowOwner> owners(keys.begin(), keys.end());
  for (ops::RowOwner& owner : owners) owner.slot = index_.view().identity_slot(owner.slot);
  tier_->disk().read_ahead(owners);
}

std::vector<std::byte> RowStore::disk_rows(std::string_view name, std::span<const DiskRows::Row> rows) const {
  const RowColumn& column = arrays_.column(name);
  std::vector<std::byte> values(rows.size() * static_cast<size_t>(column.bytes_per_row));
  tier_->read(column, rows, values.data());
  return values;
}

void RowStore::close_gaps(const BatchRows& batch) {
  check_finished(index_.state());
  remove_rows(batch, [](Context&, const ops::RemovalMemory&, const ops::IndexState&) {});
}

int64_t RowStore::close_up() {
  const ops::IndexState now = index_.state();  // waits
  if (tier_) tier_->drop_refused_rows();
  if (!free_places().empty())
    remove_rows({}, [&](Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState&) {
      // Rows of a rejected batch are not rows of finished steps.
      const ops::RowRanks ranks{.keys = arrays_.keys(), .slots = arrays_.slots()};
      ops::lowest_rows_leave(ctx, ranks, int64_t{now.finished} + 1, now.rows, int64_t{now.rows} - now.finished, memory);
    });
  return finished_rows();
}

}  // namespace hctr
