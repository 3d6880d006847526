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
namespace {

constexpr int64_t kShareThatLeaves = 16;  // a sixteenth of the rows in memory makes room at a time

/// Rows with the lowest last step + steps * log2(1 + uses) leave: each doubling of its uses lets a row stay so many
/// steps longer. These are the steps in which all of memory would be replaced: with fewer, rows of one use push
/// frequent ones out; with more, what was frequent long ago stays for too long.
uint32_t steps_per_doubling(const Turnover& turnover) { return static_cast<uint32_t>(std::min(turnover.steps(), 1e8)); }

}  // namespace

void RowStore::open_disk(const TableSpec& spec) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Kind::config, cat("table '", spec.name, "': ", why, "; or leave out \"disk\" of \"table_memory\""));
  };
  if (spec.changes_every_row())
    refuse(
        "its optimizer with \"update_type\": \"Global\" changes every row in every step, so no row can be on a "
        "disk: use \"Local\" or \"LazyGlobal\"");
  int64_t bytes = 0;
  for (const Column& column : columns_)
    if (column.in_record()) bytes += column.bytes_per_row;
  records_.emplace(runtime_.device(), bytes, least_rows_);
  disk_ = std::make_unique<DiskRows>(budget_, label_, bytes);
}

RowStore::StridedBytes RowStore::disk_values(const Column& column, DiskRows::Row* rows, std::byte* records) const {
  if (const auto at = column.place_in_entry()) return {reinterpret_cast<std::byte*>(rows) + *at, sizeof(DiskRows::Row)};
  return {records + offset_in_record(column), static_cast<size_t>(disk_->record_bytes())};
}

size_t RowStore::offset_in_record(const Column& column) const {
  int64_t at = 0;
  for (const Column& before : columns_) {
    if (before.name == column.name) break;
    if (before.in_record()) at += before.bytes_per_row;
  }
  return static_cast<size_t>(at);
}

RowStore::DiskUse RowStore::disk_use() const {
  if (!disk_) return {};
  const DiskRows::Traffic& traffic = disk_->traffic();
  return {disk_->rows(),         disk_->rows() * disk_->record_bytes(),
          traffic.rows_written,  traffic.rows_read,
          batch_rows_,           brought_,
          disk_->rows_ahead(),   traffic.rows_read_ahead,
          traffic.rows_moved,    traffic.seconds,
          disk_->has_unwritten()};
}

int64_t RowStore::rows_in_budget() const {
  int64_t bytes = 0, slack = 0;
  for (const Column& column : columns_) {
    if (!column.numbers) continue;
    bytes += column.bytes_per_row;
    slack += 2 * static_cast<int64_t>(column.memory.granularity());
  }
  const bool beyond_device = has_numbers_on_host();  // then the device gets no more of them
  const int64_t host = budget_.host_room() - slack - kept_for_map(), there = device_bytes().numbers;
  const auto fit = [&](int64_t rows) {
    const Besides besides = besides_numbers(rows, rows_move_);
    const int64_t device = std::min(room_for_numbers(besides), free_memory(runtime_.device())),
                  on_host = (rows - capacity_) * bytes + besides.on_host - besides_.on_host;
    if (device < 0) return -device <= there && on_host - device <= host;  // rows make room for keys and index
    return on_host - (beyond_device ? 0 : device) <= host;
  };
  int64_t fits = capacity_, beyond = std::max(capacity_, most_rows()) + 1;
  while (beyond - fits > 1) {  // by halves
    const int64_t middle = fits + (beyond - fits) / 2;
    (fit(middle) ? fits : beyond) = middle;
  }
  return fits;
}

std::span<const ops::MissingKey> RowStore::missing_keys(Context& ctx, const ops::KeyBatch& batch, int32_t* rows) {
  missing_.start(ctx, index_, batch, rows);
  ctx.stream().synchronize();
  return missing_.different(index_);
}

bool RowStore::may_miss_rows(const ops::KeyBatch& batch, NewKeys new_keys) const {
  // Rows of batches whose preparation is queued are counted as if all their keys were new.
  const Progress now = progress();
  const int64_t at_most = now.rows + int64_t{batches_ - now.batches} * batch_keys_ + batch.key_capacity;
  return !ranges_.empty() || disk_->rows() > 0 || (new_keys == NewKeys::get_rows && at_most > capacity_);
}

bool RowStore::list_missing(Context& ctx, const ops::KeyBatch& batch, int32_t* rows) {
  listed_ = disk_ && may_miss_rows(batch, NewKeys::get_rows);
  if (listed_) missing_.start(ctx, index_, batch, rows);
  return listed_;
}

void RowStore::bring_rows(Context& ctx, const ops::KeyBatch& batch, int32_t* rows, NewKeys new_keys) {
  if (!disk_) return;
  const bool adds = new_keys == NewKeys::get_rows;
  const bool listed = std::exchange(listed_, false) && adds;
  if (!listed && !may_miss_rows(batch, new_keys)) return;
  // The stream has prepared the batches before this one; their steps may still be computed. Their new rows are not
  // found yet, so that this counts too many, never too few.
  std::span<const ops::MissingKey> missing = listed ? missing_.different(index_) : missing_keys(ctx, batch, rows);
  std::vector<DiskRows::Row> wanted;
  const auto find_wanted = [&] {
    wanted.clear();
    for (size_t i = 0; i < missing.size(); ++i) {
      if (i + DiskRows::kAhead < missing.size()) {
        const ops::MissingKey& ahead = missing[i + DiskRows::kAhead];
        disk_->prefetch(ahead.key, index_.identity_slot(ahead.slot));
      }
      const ops::MissingKey& key = missing[i];
      if (const DiskRows::Row* row = disk_->find(key.key, index_.identity_slot(key.slot))) wanted.push_back(*row);
    }
  };
  add_batch_count();
  find_wanted();
  if (!ranges_.empty() && wanted.size() < missing.size()) check_ranges(missing, new_keys);
  const auto rows_needed = [&] { return static_cast<int64_t>(adds ? missing.size() : wanted.size()); };
  const int64_t at_most = progress().rows + rows_needed();
  const bool fits = at_most <= capacity_ && at_most <= keys_in(entry_count_);
  if (wanted.empty() && fits) return;

  const ProfiledPart part(runtime_, "wait", "disk");
  const uint32_t batches = batches_;  // this one is reserved and not closed, which waiting does not know
  if (!adds || !fits) {
    const ops::IndexState now = state();
    check_finished(now);
    if (runtime_.device().is_cuda()) {
      missing = missing_keys(ctx, batch, rows);
      find_wanted();
    }
    const auto in_memory = static_cast<int64_t>(now.rows);
    const int64_t needed = rows_needed();
    if (in_memory + needed > capacity_) {
      make_room(in_memory, needed, {rows, batch.key_capacity});
      find_wanted();  // rows on the disk may have other places now
    }
    grow_index(std::min(in_memory + needed, capacity_) + ring_keys());
  } else if (!runtime_.device().is_cuda()) {
    check_finished(*index_.state);
  }
  if (adds) brought_ += static_cast<int64_t>(wanted.size());
  const size_t block = disk_block();
  for (size_t first = 0; first < wanted.size(); first += block)
    take_back(ctx, std::span(wanted).subspan(first, std::min(block, wanted.size() - first)));
  batches_ = batches;
}

void RowStore::check_finished(const ops::IndexState& now) const {
  HCTR_EXPECT(now.rows == now.finished, label_, ": a batch is looked up before the step of the one before is queued");
}

void RowStore::look_ahead(std::span<const ops::RowOwner> keys) const {
  if (!disk_) return;
  std::vector<ops::RowOwner> owners(keys.begin(), keys.end());
  for (ops::RowOwner& owner : owners) owner.slot = index_.identity_slot(owner.slot);
  disk_->read_ahead(owners);
}

void RowStore::count_batch_rows(Context& ctx, const ops::GroupCounts* counts) {
  if (!disk_ || disk_->traffic().rows_written == 0) return;
  if (!batch_counts_) batch_counts_.emplace(runtime_.device(), sizeof *counts);
  copy_bytes(ctx.stream(), batch_counts_->data(), counts, sizeof *counts);
  counted_ = true;
  if (!runtime_.device().is_cuda()) add_batch_count();
}

void RowStore::add_batch_count() {
  if (std::exchange(counted_, false))
    batch_rows_ += reinterpret_cast<const ops::GroupCounts*>(batch_counts_->data())->runs;
}

void RowStore::make_room(int64_t rows, int64_t needed, const BatchRows& batch) {
  if (const int64_t fitting = std::min(rows_in_budget(), most_rows()); fitting > capacity_)
    grow(0, std::clamp(rows + std::max(needed, capacity_ / 2), capacity_, fitting), capacity_,
         [this](int64_t more) { grow_rows(more); });
  if (rows + needed <= capacity_) return;
  remove_rows(batch, [&](Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState& now) {
    int64_t staying = 0;
    ops::keep_rows(ctx, batch.rows, batch.count, memory.fates);
    ops::count_fates(ctx, ops::Fate::stays, now.rows, memory, staying);
    staying += shared_rows();
    HCTR_EXPECT(staying + needed <= capacity_, label_, ": a batch with ", staying + needed, " rows, capacity ",
                capacity_);
    // The index is built again each time, so many leave, though the steps behind hide only the writing of what fits in
    // the blocks.
    const int64_t leaving = std::min(std::max(rows + needed - capacity_, capacity_ / kShareThatLeaves), rows - staying);
    turnover_.add(now.batches, now.rows, leaving);
    const ops::RowRanks ranks{.keys = index_.row_keys,
                              .slots = index_.row_slots,
                              .scores = access_stats_.last_seen,
                              .uses = access_stats_.occurrences,
                              .per_doubling = steps_per_doubling(turnover_)};
    ops::lowest_rows_leave(ctx, ranks, index_.first_row, now.rows, leaving, memory);
    std::vector<ops::Fate> fates(static_cast<size_t>(now.rows) + 1);
    copy_bytes(ctx.stream(), fates.data(), memory.fates, fates.size());
    ctx.stream().synchronize();
    std::vector<int32_t> numbers;
    numbers.reserve(static_cast<size_t>(leaving));
    const void* at = fates.data();  // few of them leave
    while ((at = std::memchr(at, static_cast<int>(ops::Fate::leaves),
                             static_cast<size_t>(fates.data() + fates.size() - static_cast<const ops::Fate*>(at))))) {
      numbers.push_back(static_cast<int32_t>(static_cast<const ops::Fate*>(at) - fates.data()));
      at = static_cast<const ops::Fate*>(at) + 1;
    }
    size_t left = 0;
    try {
      put_out(numbers, left);
    } catch (const Error&) {  // all of them stay in memory
      std::vector<DiskRows::Row> twice(left);
      std::vector<std::byte> values;
      for (const Column& column : columns_) {
        if (!column.fixed()) continue;
        const auto bytes = static_cast<size_t>(column.bytes_per_row);
        values.resize(left * bytes);
        copy_out(column, std::span(numbers).first(left), values.data());
        const StridedBytes to = disk_values(column, twice.data(), nullptr);
        for (size_t i = 0; i < left; ++i) std::memcpy(to.first + i * to.stride, values.data() + i * bytes, bytes);
      }
      disk_->remove(twice);
      throw;
    }
  });
}

}  // namespace hctr
