#include "engine/disk/row_disk_tier.h"

#include <algorithm>
#include <utility>

#include "core/device/copy_bytes.h"
#include "engine/disk/disk_columns.h"

namespace hctr {
namespace {

/// Bytes of one record.
int64_t bytes_in_record(const RowArrays& arrays) {
  int64_t bytes = 0;
  for (const RowColumn& column : arrays.columns())
    if (in_record(column)) bytes += column.bytes_per_row;
  return bytes;
}

}  // namespace

RowDiskTier::RowDiskTier(RowMemory& budget, RowsInMemory& rows, const Rules& rules)
    : budget_(budget),
      arrays_(rows.arrays()),
      index_(rows.index()),
      free_(rows.free_places()),
      runtime_(arrays_.runtime()),
      rules_(rules),
      records_(runtime_.device(), bytes_in_record(arrays_), rules.rows_at_a_time),
      disk_(std::make_unique<DiskRows>(budget, arrays_.label(), bytes_in_record(arrays_))) {}

void RowDiskTier::clear() {
  disk_ = std::make_unique<DiskRows>(budget_, arrays_.label(), disk_->record_bytes());
  set_capacity(arrays_.capacity());
}

DiskUse RowDiskTier::use() const {
  const DiskRows::Traffic& traffic = disk_->traffic();
  return {disk_->rows(),
          disk_->rows() * disk_->record_bytes() + disk_->map_bytes_on_disk(),
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

void RowDiskTier::begin_step(uint32_t step) {
  recent_steps_.push_back(step);
  if (recent_steps_.size() > rules_.batches_ahead) recent_steps_.erase(recent_steps_.begin());
}

bool RowDiskTier::may_miss_rows(const ops::KeyBatch& batch, NewKeys new_keys) const {
  // Upper bound: counts every key of the queued batches and of this batch as a new row.
  const RowIndex::Progress now = index_.progress();
  const int64_t at_most = now.rows + index_.queued(now) * rules_.batch_keys + batch.key_capacity;
  return rules_.all_exist || disk_->rows() > 0 || (new_keys == NewKeys::get_rows && at_most > arrays_.capacity());
}

bool RowDiskTier::list_missing(Context& ctx, const ops::KeyBatch& batch, int32_t* rows) {
  listed_ = may_miss_rows(batch, NewKeys::get_rows);
  if (listed_) missing_.start(ctx, index_.view(), batch, rows);
  return listed_;
}

std::optional<RowDiskTier::Arrivals> RowDiskTier::find_arrivals(Context& ctx, const ops::KeyBatch& batch, int32_t* rows,
                                                                NewKeys new_keys) {
  const bool adds = new_keys == NewKeys::get_rows;
  if (!adds) lookups_queued_ = true;
  const bool listed = std::exchange(listed_, false) && adds;
  if (!listed) {
    if (!may_miss_rows(batch, new_keys)) return std::nullopt;
    missing_.start(ctx, index_.view(), batch, rows);
    ctx.stream().synchronize();
  }
  // The stream has prepared the earlier batches, but their steps may still be running.
  Arrivals coming{.missing = missing_.different(index_.view()), .from_disk = {}, .fresh = {}, .new_keys = new_keys};
  add_batch_count();
  find_again(coming);
  return coming;
}

void RowDiskTier::find_again(Arrivals& coming) const {
  coming.from_disk.clear();
  coming.fresh.clear();
  const std::span<const ops::MissingKey> missing = coming.missing;
  for (size_t i = 0; i < missing.size(); ++i) {
    if (i + DiskRows::kAhead < missing.size()) {
      const ops::MissingKey& ahead = missing[i + DiskRows::kAhead];
      disk_->prefetch(ahead.key, index_.view().identity_slot(ahead.slot));
    }
    const ops::MissingKey& key = missing[i];
    const int32_t slot = index_.view().identity_slot(key.slot);
    if (const DiskRows::Row* row = disk_->find(key.key, slot))
      coming.from_disk.push_back(*row);
    else if (coming.new_keys == NewKeys::get_rows)
      coming.fresh.push_back({.key = key.key, .slot = slot});
  }
}

int64_t RowDiskTier::rows_at_end(const Arrivals& coming) const {
  const auto from_disk = static_cast<int64_t>(coming.from_disk.size()),
             fresh = static_cast<int64_t>(coming.fresh.size());
  if (!rules_.places_for_new) return std::max<int64_t>(0, from_disk - free_.count()) + fresh;
  return std::max<int64_t>(0, from_disk + fresh - free_.count());
}

bool RowDiskTier::has_work(const Arrivals& coming) const {
  return !coming.from_disk.empty() || (!free_.empty() && !coming.fresh.empty() && rules_.places_for_new);
}

void RowDiskTier::bring(Context& ctx, const Arrivals& coming) {
  if (coming.new_keys == NewKeys::get_rows) brought_ += static_cast<int64_t>(coming.from_disk.size());
  const auto in_blocks = [&](std::span<const DiskRows::Row> arrivals, From from, To to) {
    const size_t block = block_rows();
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
  if (rules_.places_for_new) in_blocks(fresh.first(that_have_places(coming.fresh)), From::new_keys, To::places);
}

void RowDiskTier::look_ahead(std::span<const ops::RowOwner> keys) const {
  std::vector<ops::RowOwner> owners(keys.begin(), keys.end());
  for (ops::RowOwner& owner : owners) owner.slot = index_.view().identity_slot(owner.slot);
  disk_->read_ahead(owners);
}

void RowDiskTier::count_batch_rows(const ops::GroupCounts* counts) {
  if (disk_->traffic().rows_written == 0) return;
  if (!batch_counts_) batch_counts_.emplace(runtime_.device(), sizeof *counts);
  copy_bytes(runtime_.prepare_stream(), batch_counts_->data(), counts, sizeof *counts);
  counted_ = true;
  if (!runtime_.device().is_cuda()) add_batch_count();
}

void RowDiskTier::add_batch_count() {
  if (std::exchange(counted_, false))
    batch_rows_ += reinterpret_cast<const ops::GroupCounts*>(batch_counts_->data())->runs;
}

}  // namespace hctr
