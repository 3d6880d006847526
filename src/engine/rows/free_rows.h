// Free row numbers of a table: the numbers of evicted rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace hctr {

/// A sorted list of free row numbers. The lowest numbers are reused first, so that equal batches use equal numbers, and
/// numbers in device memory are used before numbers in host memory.
class FreeRows {
 public:
  bool empty() const { return count() == 0; }
  int64_t count() const { return static_cast<int64_t>(numbers_.size() - taken_); }
  /// The free numbers, sorted.
  std::span<const int32_t> rows() const { return std::span(numbers_).subspan(taken_); }
  /// Adds sorted numbers that are not free yet.
  void add(std::span<const int32_t> rows) {
    std::vector<int32_t> all;
    all.reserve(rows.size() + static_cast<size_t>(count()));
    std::merge(rows.begin(), rows.end(), this->rows().begin(), this->rows().end(), std::back_inserter(all));
    numbers_ = std::move(all);
    taken_ = 0;
  }
  /// Takes the lowest `count` numbers; at least `count` must be free. The result is valid until the next add() or
  /// clear().
  std::span<const int32_t> take(size_t count) {
    taken_ += count;
    return std::span(numbers_).subspan(taken_ - count, count);
  }
  void clear() {
    numbers_.clear();
    taken_ = 0;
  }

 private:
  std::vector<int32_t> numbers_;  // sorted
  size_t taken_ = 0;              // how many of numbers_ have been taken
};

}  // namespace hctr
