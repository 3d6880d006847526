#include "store/read_epochs.h"

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

namespace hctr {

std::atomic<uint64_t>& ReadEpochs::enter() {
  size_t at = std::hash<std::thread::id>()(std::this_thread::get_id());
  at ^= at >> 12;  // identifiers are addresses
  for (size_t tries = 1;; ++tries, ++at) {
    std::atomic<uint64_t>& slot = readers_[at % kReaders].epoch;
    uint64_t nobody = 0;
    if (slot.load(std::memory_order_relaxed) == 0 && slot.compare_exchange_strong(nobody, epoch_.load())) return slot;
    if (tries % kReaders == 0) std::this_thread::yield();
  }
}

void ReadEpochs::retire(std::shared_ptr<void> memory) {
  retired_.push_back({epoch_.fetch_add(1), std::move(memory)});
  uint64_t oldest = UINT64_MAX;
  for (const Slot& slot : readers_)
    if (const uint64_t epoch = slot.epoch.load(); epoch != 0) oldest = std::min(oldest, epoch);
  std::erase_if(retired_, [&](const Retired& one) { return one.epoch < oldest; });
}

}  // namespace hctr
