// Memory for more rows, and for their keys in the index: got on the host, before the batch that may need it is queued.
#include <algorithm>
#include <cstddef>

#include "device/copy.h"
#include "embedding/row_store.h"

namespace hctr {
namespace {

/// The memory that a full table gets next.
int64_t half_more(int64_t rows) { return rows + rows / 2; }

}  // namespace

template <class T>
void RowStore::set_in_state(size_t offset, T value) {
  copy_bytes(runtime_.compute_stream(), state_.data() + offset, &value, sizeof value);
  runtime_.compute_stream().synchronize();
}

void RowStore::reserve_rows() {
  swap_by_use();
  if (!keys_.empty()) {
    check_keys();
    ++batches_;
    return;
  }
  if (!rows_may_leave()) check_limit();
  const int64_t at_most = reserve_memory();
  if (!rows_may_leave()) check_limit();
  near_limit_ = row_limit_ > 0 && at_most > most_kept();
  ++batches_;
}

int64_t RowStore::reserve_memory() {
  if (!keys_.empty()) return most_rows();
  Progress now = progress();
  const auto queued = static_cast<int64_t>(batches_ - now.batches);  // both count modulo 2^32
  int64_t at_most = in_all_tiers(now) + (queued + 1) * batch_keys_;
  if (rows_may_leave()) at_most = std::min(at_most, most_kept() + batch_keys_);  // after each batch's removal
  // With a disk, bring_rows() gets memory, or has rows leave.
  const int64_t in_memory = disk_ ? std::min(now.rows + (queued + 1) * batch_keys_, capacity_) : at_most;
  if (in_memory > capacity_ || !index_has_room(in_memory)) {
    now = wait_for_all();
    if (!rows_may_leave() && row_limit_ > 0 && in_all_tiers(now) > most_kept())
      return at_most;  // reserve_rows() refuses them
    const int64_t needed = std::min(now.rows + batch_keys_, row_limit_ > 0 ? row_capacity_limit_ : kMostRows);
    int64_t ample = std::min(std::max(now.rows + ring_keys(), half_more(capacity_)), most_rows());
    // Host memory is slow to get: rows that may never come take little of it.
    if (ample > capacity_ && rows_on_device(ample) < ample)
      ample = std::min(ample, std::max(now.rows + ring_keys(), capacity_ + capacity_ / 8));
    // Keys that get no row need entries too, until the limit is detected.
    if (!disk_ && now.rows + ring_keys() > capacity_)
      grow(needed, ample, capacity_, [this](int64_t rows) { grow_rows(rows); });
    grow(now.rows + batch_keys_, now.rows + ring_keys(), keys_in(entry_count_),
         [this](int64_t keys) { grow_index(keys); });
    if (index_marks_ > 0 && !index_has_room(now.rows + batch_keys_)) build_index();
    at_most = in_all_tiers(now) + batch_keys_;
  }
  return at_most;
}

void RowStore::confirm_capacity() const {
  if (!near_limit_) return;
  runtime_.prepare_stream().synchronize();
  if (!rows_may_leave()) check_limit(progress());
}

void RowStore::grow(int64_t needed, int64_t ample, int64_t have, const std::function<void(int64_t)>& grow_to) {
  if (std::max(needed, ample) <= have) return;
  budget_.end_snapshots_on_host(nullptr, false);
  try {
    return grow_to(std::max(ample, needed));
  } catch (const Error&) {
    if (needed <= have) return;
  }
  in_context([&] { return cat("reserving memory for more rows: ", label_, " has ", progress().rows); },
             [&] {
               try {
                 grow_to(needed);
               } catch (const Error&) {
                 if (!budget_.end_snapshots_on_host(nullptr, true)) throw;
                 grow_to(needed);
               }
             });
}

void RowStore::grow_rows(int64_t rows) {
  if (rows > reserved_rows_)
    throw Error(Kind::device, cat(rows, " rows are needed and the memory of ", to_string(runtime_.device()), " holds ",
                                  reserved_rows_));
  const bool moves = rows_on_device(rows) < rows && rows_move_;
  check_host_room(rows, rows_on_device(rows, moves), besides_numbers(rows, moves));
  make_device_room(rows, moves);
  for (Column& column : columns_)
    if (!column.numbers) column.memory.grow(column.bytes_to(rows));
  if (marks_) marks_->grow(static_cast<size_t>(rows + 1));
  if (policy_.removes_rows() || on_disk_)
    entries_.grow(ops::removal_bytes(runtime_.device(), rows));  // removal works in the memory of the index
  if (moves && !uses_) allocate_uses(rows);
  const int64_t on_device = rows_on_device(rows);
  for (Column& column : columns_) {
    if (!column.numbers) continue;
    if (on_device == rows) {
      column.memory.grow(column.bytes_to(rows));
      continue;
    }
    const size_t border = device_part(column, on_device);
    if (border > column.memory.bytes()) column.memory.grow(border);
    column.memory.grow_on_host(column.bytes_to(rows));
  }
  if (uses_ && !counts_uses() && on_device < rows) note_border();
  capacity_ = rows;
  if (disk_) disk_->set_room_ahead(records_->most_ahead(rows));
  count_besides_numbers();
  set_in_state(offsetof(ops::IndexState, row_capacity), static_cast<uint32_t>(rows));
}

void RowStore::grow_index(int64_t keys) {
  const int64_t entries = entries_for(keys);
  if (entries <= entry_count_) return;
  entries_.grow(static_cast<size_t>(entries) * sizeof(ops::IndexEntry));
  set_in_state(offsetof(ops::IndexState, mask), static_cast<uint64_t>(entries - 1));
  entry_count_ = entries;
  build_index();
}

void RowStore::build_index() { build_index(runtime_.compute_stream()); }

void RowStore::build_index(StreamRef stream) {
  Context ctx(runtime_, stream);
  zero_bytes(ctx.stream(), entries_.data(), static_cast<size_t>(entry_count_) * sizeof(ops::IndexEntry));
  zero_bytes(ctx.stream(), state_.data() + offsetof(ops::IndexState, marks), sizeof(uint32_t));
  ops::index_rebuild(ctx, index_, reinterpret_cast<const uint8_t*>(left_));
  ctx.stream().synchronize();
  index_marks_ = 0;
  ++index_builds_;
}

}  // namespace hctr
