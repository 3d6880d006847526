#include "engine/disk/disk_writes.h"

#include <algorithm>
#include <cstring>

namespace hctr {

const std::pair<uint32_t, uint32_t>* DiskWrites::Block::find(uint32_t place) const {
  if (places.empty() || place < places.front().first || place > places.back().first) return nullptr;
  const auto at = std::lower_bound(places.begin(), places.end(), std::pair(place, uint32_t{0}));
  return at->first == place ? &*at : nullptr;
}

DiskWrites::~DiskWrites() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  change_.notify_all();
  thread_.join();
}

void DiskWrites::start(std::span<const uint32_t> places, const std::byte* records) {
  any_left();
  auto block = std::make_unique<Block>();
  block->records = records;
  block->places.reserve(places.size());
  for (size_t i = 0; i < places.size(); ++i) block->places.emplace_back(places[i], static_cast<uint32_t>(i));
  if (!std::is_sorted(block->places.begin(), block->places.end()))
    std::sort(block->places.begin(), block->places.end());
  {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(std::move(block));
    waiting_.push_back(blocks_.back().get());
  }
  change_.notify_all();
}

void DiskWrites::wait(const std::byte* records) {
  std::unique_lock lock(mutex_);
  for (const auto& block : blocks_)
    if (block->records == records) change_.wait(lock, [&] { return block->state != State::waits; });
}

void DiskWrites::wait_for_all() {
  for (const auto& block : blocks_) wait(block->records);
  any_left();
}

bool DiskWrites::any_left() {
  // Drop blocks in order, and stop at a failed block. Blocks after it must stay, because find() must return the latest
  // record of a place.
  const std::lock_guard lock(mutex_);
  while (!blocks_.empty() && blocks_.front()->state == State::written) blocks_.pop_front();
  return !blocks_.empty();
}

bool DiskWrites::has_unwritten() const {
  return std::any_of(blocks_.begin(), blocks_.end(), [](const auto& block) { return block->state != State::written; });
}

const std::byte* DiskWrites::find(uint32_t place) const {
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    // The block may already be written, but its memory stays valid until wait().
    if (const auto* const at = (*block)->find(place)) return (*block)->records + at->second * record_bytes_;
  }
  return nullptr;
}

std::vector<DiskWrites::Failed> DiskWrites::failed() const {
  std::vector<Failed> all;
  for (const auto& block : blocks_)
    if (block->state == State::failed) all.push_back({block->records, block->places.size(), block->error});
  return all;
}

bool DiskWrites::is_unwritten(uint32_t place) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const auto& block) {
    return block->state != State::written && block->find(place) != nullptr;
  });
}

void DiskWrites::forget(const std::byte* records) {
  const std::lock_guard lock(mutex_);
  std::erase_if(blocks_, [&](const auto& block) { return block->records == records && block->state == State::failed; });
}

void DiskWrites::run() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    change_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    Block* const block = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    State then = State::written;
    try {
      write(*block);
    } catch (...) {
      block->error = std::current_exception();
      then = State::failed;
    }
    lock.lock();
    block->state = then;
    change_.notify_all();
  }
}

void DiskWrites::write(const Block& block) {
  const size_t most = std::max<size_t>(1, most_run_bytes_ / record_bytes_);
  std::vector<std::byte> apart;
  const auto& places = block.places;
  for (size_t first = 0, next = 0; first < places.size(); first = next) {
    bool in_memory = true;
    for (next = first + 1;
         next < places.size() && next - first < most && places[next].first == places[next - 1].first + 1; ++next)
      in_memory = in_memory && places[next].second == places[next - 1].second + 1;
    const std::byte* run = block.records + places[first].second * record_bytes_;
    if (!in_memory) {
      apart.resize((next - first) * record_bytes_);
      for (size_t i = first; i < next; ++i)
        std::memcpy(apart.data() + (i - first) * record_bytes_, block.records + places[i].second * record_bytes_,
                    record_bytes_);
      run = apart.data();
    }
    file_.write(static_cast<int64_t>(places[first].first) * static_cast<int64_t>(record_bytes_),
                {run, (next - first) * record_bytes_});
  }
}

}  // namespace hctr
