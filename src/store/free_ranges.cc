#include "store/free_ranges.h"

#include <iterator>

namespace hctr {

void FreeRanges::erase(std::map<uint64_t, uint64_t>::const_iterator range) {
  by_size_.erase({range->second, range->first});
  bytes_at_.erase(range);
}

void FreeRanges::add(uint64_t offset, uint64_t bytes) {
  const auto after = bytes_at_.lower_bound(offset);
  if (after != bytes_at_.begin())
    if (const auto before = std::prev(after); before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      erase(before);
    }
  if (after != bytes_at_.end() && offset + bytes == after->first) {
    bytes += after->second;
    erase(after);
  }
  bytes_at_[offset] = bytes;
  by_size_.emplace(bytes, offset);
}

std::optional<uint64_t> FreeRanges::find(uint64_t bytes) const {
  const auto found = by_size_.lower_bound({bytes, 0});
  if (found == by_size_.end()) return std::nullopt;
  return found->second;
}

void FreeRanges::take(uint64_t offset, uint64_t bytes) {
  const auto range = bytes_at_.find(offset);
  const uint64_t left = range->second - bytes;
  erase(range);
  if (left > 0) add(offset + bytes, left);
}

void FreeRanges::clear() {
  bytes_at_.clear();
  by_size_.clear();
}

}  // namespace hctr
