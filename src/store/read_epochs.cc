#include "store/read_epochs.h"

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

namespace hctr {

std::atomic<int64_t>& ReadEpochs::enter() {
  size_t stripe = std::hash<std::thread::id>()(std::this_thread::get_id());
  stripe = (stripe ^ (stripe >> 12)) % kStripes;  // mixes the bits: thread identifiers are addresses
  for (;;) {
    const uint32_t generation = current_.load();
    std::atomic<int64_t>& count = counters_[generation][stripe].readers;
    count.fetch_add(1);
    if (current_.load() == generation) return count;
    count.fetch_sub(1);
  }
}

bool ReadEpochs::has_readers(uint32_t generation) const {
  return std::ranges::any_of(counters_[generation], [](const Counter& one) { return one.readers.load() != 0; });
}

void ReadEpochs::retire(std::shared_ptr<void> memory) {
  retired_.push_back(std::move(memory));
  const uint32_t other = 1 - current_.load();
  if (has_readers(other)) return;
  before_ = std::exchange(retired_, {});
  current_.store(other);
}

}  // namespace hctr
