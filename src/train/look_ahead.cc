#include "train/look_ahead.h"

#include <algorithm>
#include <new>
#include <utility>

namespace hctr {
namespace {

std::vector<ops::RowOwner> keys_with_slots(const BatchView::Table& table, int64_t slots) {
  std::vector<ops::RowOwner> keys;
  keys.reserve(static_cast<size_t>(table.offset(slots * table.samples)));
  for (int64_t slot = 0; slot < slots; ++slot) {
    const int32_t end = table.offset((slot + 1) * table.samples);
    for (int32_t i = table.offset(slot * table.samples); i < end; ++i)
      keys.push_back({table.key(i), static_cast<int32_t>(slot)});
  }
  return keys;
}

}  // namespace

LookAhead::LookAhead(LookAheadGroup::Ask ask, size_t batches, std::shared_ptr<LookAheadGroup> group)
    : group_(std::move(group)),
      member_(group_->join(std::move(ask))),
      most_(batches),
      depth_(static_cast<int>(batches)),
      thread_([this] { run(); }) {}

void LookAhead::add(const BatchView& batch) noexcept try {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
  }
  Batch added{.first_sample = batch.state->first_sample, .keys = {}};
  for (size_t t = 0; t < batch.tables.size(); ++t)
    added.keys.push_back(keys_with_slots(batch.tables[t], batch.layout->shape.tables[t].slots));
  const std::lock_guard lock(mutex_);
  // Reader threads fill batches concurrently, so batches may arrive out of order.
  const auto behind = std::upper_bound(batches_.begin(), batches_.end(), added.first_sample,
                                       [](int64_t first, const Batch& other) { return first < other.first_sample; });
  batches_.insert(behind, std::move(added));
  // The number of batches exceeds this limit only after the reader has restarted.
  while (batches_.size() > most_ + 1) batches_.pop_back();
  change_.notify_one();
} catch (const std::bad_alloc&) {  // memory is short, so this batch is skipped, and its step waits for the disk
}

void LookAhead::begin_step(int64_t first_sample, const DiskRows::Fetched& so_far) {
  const std::lock_guard lock(mutex_);
  std::erase_if(batches_, [&](const Batch& batch) { return batch.first_sample <= first_sample; });
  depth_.note(so_far.ahead - noted_.ahead, so_far.again - noted_.again);
  noted_ = so_far;
  change_.notify_one();
}

int LookAhead::depth() const {
  const std::lock_guard lock(mutex_);
  return depth_.depth();
}

void LookAhead::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  change_.notify_one();
  group_->leave(*member_);
  if (thread_.joinable()) thread_.join();
}

LookAhead::Batch* LookAhead::next() {
  const size_t known = std::min(batches_.size(), static_cast<size_t>(depth_.depth()));
  for (size_t i = 0; i < known; ++i)
    if (!batches_[i].asked) return &batches_[i];
  return nullptr;
}

void LookAhead::run() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    change_.wait(lock, [&] { return stopped_ || next() != nullptr; });
    if (stopped_) return;
    Batch* const batch = next();
    batch->asked = true;
    const Keys keys = std::exchange(batch->keys, {});
    lock.unlock();
    try {
      for (size_t input = 0; input < keys.size(); ++input) group_->ask(*member_, input, keys[input]);
    } catch (const std::bad_alloc&) {  // memory is short, so this batch is skipped, and its step waits for the disk
    }
    lock.lock();
  }
}

}  // namespace hctr
