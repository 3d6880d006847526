// Free ranges of memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace hctr {

/// Ranges that touch become one. Not thread-safe.
class FreeRanges {
 public:
  void add(uint64_t offset, uint64_t bytes);
  /// The offset of the smallest range of at least `bytes` bytes; none if there is no such range.
  std::optional<uint64_t> find(uint64_t bytes) const;
  /// Removes the first `bytes` bytes of the range at `offset`, which find() returned.
  void take(uint64_t offset, uint64_t bytes);
  void clear();
  /// [offset] bytes
  const std::map<uint64_t, uint64_t>& ranges() const { return bytes_at_; }

 private:
  void erase(std::map<uint64_t, uint64_t>::const_iterator);

  std::map<uint64_t, uint64_t> bytes_at_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // bytes and offset of each range
};

}  // namespace hctr
