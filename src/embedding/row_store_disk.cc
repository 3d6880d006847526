// Rows on a disk: those that batches seldom use, or used long ago, leave the memory, and come back before a batch that
// has their keys is looked up. Kernels see rows in memory alone.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>

#include "device/copy.h"
#include "device/profiler.h"
#include "embedding/row_store.h"

namespace hctr {
void RowStore::open_disk(const TableSpec& spec) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Kind::config, cat("table '", spec.name, "': ", why, "; or leave out \"disk\" of \"table_memory\""));
  };
  if (spec.changes_every_row())
    refuse(
        "its optimizer with \"update_type\": \"Global\" changes every row in every step, so no row can be on a "
        "disk: use \"Local\" or \"LazyGlobal\"");
  int64_t bytes = 0;
  for (const Column& column : arrays_.columns())
    if (column.in_record()) bytes += column.bytes_per_row;
  records_.emplace(runtime_.device(), bytes, rows_at_a_time(spec));
  disk_ = std::make_unique<DiskRows>(budget_, arrays_.label(), bytes);
  account_.set_disk(*disk_, *records_);
}

RowStore::StridedBytes RowStore::disk_values(const Column& column, DiskRows::Row* rows, std::byte* records) const {
  if (const auto at = column.place_in_entry()) return {reinterpret_cast<std::byte*>(rows) + *at, sizeof(DiskRows::Row)};
  return {records + offset_in_record(column), static_cast<size_t>(disk_->record_bytes())};
}

size_t RowStore::offset_in_record(const Column& column) const {
  int64_t at = 0;
  for (const Column& before : arrays_.columns()) {
    if (before.name == column.name) break;
    if (before.in_record()) at += before.bytes_per_row;
  }
  return static_cast<size_t>(at);
}

RowStore::DiskUse RowStore::disk_use() const {
  if (!disk_) return {};
  const DiskRows::Traffic& traffic = disk_->traffic();
  return {disk_->rows(),
          disk_->rows() * disk_->record_bytes(),
          traffic.rows_written,
          traffic.rows_read,
          batch_rows_,
          brought_,
          disk_->rows_ahead(),
          traffic.rows_read_ahead,
          traffic.rows_moved,
          traffic.seconds,
          disk_->has_unwritten(),
          free_.count(),
          into_places_,
          moved_up_,
          index_.builds(),
          waits_to_leave_};
}

std::span<const ops::MissingKey> RowStore::missing_keys(Context& ctx, const ops::KeyBatch& batch, int32_t* rows) {
  missing_.start(ctx, index_.view(), batch, rows);
  ctx.stream().synchronize();
  return missing_.different(index_.view());
}

bool RowStore::may_miss_rows(const ops::KeyBatch& batch, NewKeys new_keys) const {
  // Rows of batches whose preparation is queued are counted as if all their keys were new, and at the end.
  const Progress now = index_.progress();
  const int64_t at_most = now.rows + index_.queued(now) * batch_keys_ + batch.key_capacity;
  return !ranges_.empty() || disk_->rows() > 0 || (new_keys == NewKeys::get_rows && at_most > arrays_.capacity());
}

bool RowStore::list_missing(Context& ctx, const ops::KeyBatch& batch, int32_t* rows) {
  listed_ = disk_ && may_miss_rows(batch, NewKeys::get_rows);
  if (listed_) missing_.start(ctx, index_.view(), batch, rows);
  return listed_;
}

RowStore::Arrivals RowStore::find_arrivals(std::span<const ops::MissingKey> missing, NewKeys new_keys) const {
  Arrivals coming;
  for (size_t i = 0; i < missing.size(); ++i) {
    if (i + DiskRows::kAhead < missing.size()) {
      const ops::MissingKey& ahead = missing[i + DiskRows::kAhead];
      disk_->prefetch(ahead.key, index_.view().identity_slot(ahead.slot));
    }
    const ops::MissingKey& key = missing[i];
    const int32_t slot = index_.view().identity_slot(key.slot);
    if (const DiskRows::Row* row = disk_->find(key.key, slot))
      coming.from_disk.push_back(*row);
    else if (new_keys == NewKeys::get_rows)
      coming.fresh.push_back({.key = key.key, .slot = slot});
  }
  return coming;
}

void RowStore::bring_rows(Context& ctx, const ops::KeyBatch& batch, int32_t* rows, NewKeys new_keys) {
  if (!disk_) return;
  const bool adds = new_keys == NewKeys::get_rows;
  if (!adds) lookups_queued_ = true;
  const bool listed = std::exchange(listed_, false) && adds;
  if (!listed && !may_miss_rows(batch, new_keys)) return;
  // The stream has prepared the batches before this one; their steps may still be computed.
  const std::span<const ops::MissingKey> missing =
      listed ? missing_.different(index_.view()) : missing_keys(ctx, batch, rows);
  add_batch_count();
  Arrivals coming = find_arrivals(missing, new_keys);
  if (!ranges_.empty() && coming.from_disk.size() < missing.size()) check_ranges(missing, new_keys);
  const int64_t at_most = index_.progress().rows + rows_at_end(coming);
  const bool fits = at_most <= arrays_.capacity() && index_.has_room(at_most);
  const bool into_places = !free_.empty() && !coming.fresh.empty() && places_for_new_rows();
  if (coming.from_disk.empty() && fits && !into_places) return;

  const ProfiledPart part(runtime_, "wait", "disk");
  const uint32_t batches =
      index_.reserved_batches();  // this one is reserved and not closed, which waiting does not know
  if (!runtime_.device().is_cuda()) check_finished(*index_.view().state);
  // What evaluations look up is no step's.
  if (!adds || (!fits && std::exchange(lookups_queued_, false))) check_finished(index_.state());
  if (!fits) {
    if (at_most > arrays_.capacity()) {
      make_room(coming, {rows, batch.key_capacity});
      coming = find_arrivals(missing, new_keys);  // rows on the disk may have other places now
    }
    const int64_t keys = std::min(index_.progress().rows + rows_at_end(coming), arrays_.capacity()) + ring_keys();
    index_.grow(keys);
    // Steps that are queued do not search it, and nothing else is.
    if (!index_.has_room(keys)) index_.build(runtime_.prepare_stream());
  }
  if (adds) brought_ += static_cast<int64_t>(coming.from_disk.size());
  const auto in_blocks = [&](std::span<const DiskRows::Row> arrivals, From from, To to) {
    const size_t block = disk_block();
    for (size_t first = 0; first < arrivals.size(); first += block)
      take_in(ctx, arrivals.subspan(first, std::min(block, arrivals.size() - first)), from, to);
  };
  const auto that_have_places = [&](const std::vector<DiskRows::Row>& arrivals) {
    return std::min(arrivals.size(), static_cast<size_t>(free_.count()));
  };
  const std::span from_disk(coming.from_disk), fresh(coming.fresh);
  const size_t into = that_have_places(coming.from_disk);
  in_blocks(from_disk.first(into), From::disk, To::places);
  in_blocks(from_disk.subspan(into), From::disk, To::end);
  if (places_for_new_rows()) in_blocks(fresh.first(that_have_places(coming.fresh)), From::new_keys, To::places);
  index_.set_reserved_batches(batches);  // index_insert gives the other new keys rows at the end
}

void RowStore::check_finished(const ops::IndexState& now) const {
  HCTR_EXPECT(now.rows == now.finished, arrays_.label(),
              ": a batch is looked up before the step of the one before is queued");
}

void RowStore::look_ahead(std::span<const ops::RowOwner> keys) const {
  if (!disk_) return;
  std::vector<ops::RowOwner> owners(keys.begin(), keys.end());
  for (ops::RowOwner& owner : owners) owner.slot = index_.view().identity_slot(owner.slot);
  disk_->read_ahead(owners);
}

void RowStore::count_batch_rows(const ops::GroupCounts* counts) {
  if (!disk_ || disk_->traffic().rows_written == 0) return;
  if (!batch_counts_) batch_counts_.emplace(runtime_.device(), sizeof *counts);
  copy_bytes(runtime_.prepare_stream(), batch_counts_->data(), counts, sizeof *counts);
  counted_ = true;
  if (!runtime_.device().is_cuda()) add_batch_count();
}

void RowStore::add_batch_count() {
  if (std::exchange(counted_, false))
    batch_rows_ += reinterpret_cast<const ops::GroupCounts*>(batch_counts_->data())->runs;
}

}  // namespace hctr
