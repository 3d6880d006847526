// Memory for more rows and for their keys in the index. The host allocates it before it queues the batch that may need
// it.
#include <algorithm>
#include <cstddef>

#include "core/device/copy_bytes.h"
#include "engine/table/row_store.h"

namespace hctr {
namespace {

/// The rows that a full table grows to.
int64_t half_more(int64_t rows) { return rows + rows / 2; }

}  // namespace

void RowStore::reserve_rows() {
  if (uses_) uses_->swap(budget_.limits().move_every, budget_.limits().swap_always, free_places());
  if (!keys_.empty()) {
    check_keys();
    index_.count_batch();
    return;
  }
  if (!rows_may_leave()) check_limit();
  const int64_t at_most = reserve_memory();
  if (!rows_may_leave()) check_limit();
  near_limit_ = row_limit_ > 0 && at_most > most_kept();
  index_.count_batch();
}

int64_t RowStore::reserve_memory() {
  if (!keys_.empty()) return most_rows();
  Progress now = index_.progress();
  const int64_t queued = index_.queued(now);
  int64_t at_most = in_all_tiers(now) + (queued + 1) * batch_keys_;
  if (rows_may_leave()) at_most = std::min(at_most, most_kept() + batch_keys_);  // after each removal
  // With a disk, bring_rows() allocates memory or evicts rows.
  const int64_t in_memory = tier_ ? std::min(now.rows + (queued + 1) * batch_keys_, arrays_.capacity()) : at_most;
  if (in_memory > arrays_.capacity() || !index_.has_room(in_memory)) {
    now = index_.wait_for_all();
    if (!rows_may_leave() && row_limit_ > 0 && in_all_tiers(now) > most_kept())
      return at_most;  // reserve_rows() reports the error
    const int64_t needed = std::min(now.rows + batch_keys_, row_limit_ > 0 ? row_capacity_limit_ : kMostRows);
    int64_t ample = std::min(std::max(now.rows + ring_keys(), half_more(arrays_.capacity())), most_rows());
    // Allocating host memory is slow: allocate little for rows that may never be needed.
    if (ample > arrays_.capacity() && account_.rows_on_device(ample) < ample)
      ample = std::min(ample, std::max(now.rows + ring_keys(), arrays_.capacity() + arrays_.capacity() / 8));
    // Keys without a row need entries too, until the limit is detected.
    if (!tier_ && now.rows + ring_keys() > arrays_.capacity())
      grow(needed, ample, arrays_.capacity(), [this](int64_t rows) { grow_rows(rows); });
    grow(now.rows + batch_keys_, now.rows + ring_keys(), index_.most_keys(),
         [this](int64_t keys) { index_.grow(keys); });
    if (index_.has_marks() && !index_.has_room(now.rows + batch_keys_)) index_.build();
    at_most = in_all_tiers(now) + batch_keys_;
  }
  return at_most;
}

void RowStore::reserve_import(int64_t rows) {
  if (!keys_.empty() || tier_) return;
  const int64_t keys = index_.wait_for_all().rows + rows + batch_keys_, wanted = std::min(keys, most_rows());
  // If memory is short now, reserve_memory() tries again later, and reports errors.
  grow(arrays_.capacity(), wanted, arrays_.capacity(), [this](int64_t most) { grow_rows(most); });
  grow(index_.most_keys(), keys, index_.most_keys(), [this](int64_t most) { index_.grow(most); });
}

void RowStore::confirm_capacity() const {
  if (!near_limit_) return;
  runtime_.prepare_stream().synchronize();
  if (!rows_may_leave()) check_limit(index_.progress());
}

void RowStore::grow(int64_t needed, int64_t ample, int64_t have, const std::function<void(int64_t)>& grow_to) {
  if (std::max(needed, ample) <= have) return;
  ++growths_;
  budget_.end_snapshots_on_host(nullptr, false);
  try {
    return grow_to(std::max(ample, needed));
  } catch (const Error&) {
    if (needed <= have) return;
  }
  in_context([&] { return cat("reserving memory for more rows: ", arrays_.label(), " has ", index_.progress().rows); },
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
  if (rows > arrays_.most_rows())
    throw Error(Kind::device, cat(rows, " rows are needed and the memory of ", to_string(runtime_.device()), " holds ",
                                  arrays_.most_rows()));
  const bool moves = account_.rows_on_device(rows) < rows && rows_move_;
  account_.check_host_room(rows, account_.rows_on_device(rows, moves), moves);
  make_device_room(rows, moves);
  arrays_.grow_besides_numbers(rows);
  if (policy_.removes_rows() || on_disk_)
    index_.reserve_scratch(ops::removal_bytes(runtime_.device(), rows));  // removal uses the memory of the index
  if (moves && !uses_) start_uses(rows);
  const int64_t on_device = account_.rows_on_device(rows);
  arrays_.grow_numbers(rows, on_device);
  if (uses_ && !uses_->counts() && on_device < rows) uses_->note_border();
  arrays_.set_capacity(rows);
  if (tier_) tier_->set_capacity(rows);
  account_.count();
  index_.set(&ops::IndexState::row_capacity, static_cast<uint32_t>(rows));
}

void RowStore::start_uses(int64_t rows) {
  uses_.emplace(arrays_, index_, changes_, rows, !keys_.empty());
  account_.set_uses(uses_->buffer_bytes());
}

}  // namespace hctr
