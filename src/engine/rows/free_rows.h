// Numbers of rows that have left a table, and that no row has now.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace hctr {

/// The places that rows have left, in the order of their numbers: the lowest are taken first, so that equal batches
/// take equal places, and those on the device before those on its host.
class FreeRows {
 public:
  bool empty() const { return count() == 0; }
  int64_t count() const { return static_cast<int64_t>(numbers_.size() - taken_); }
  /// Ascending.
  std::span<const int32_t> rows() const { return std::span(numbers_).subspan(taken_); }
  /// Adds rows, which ascend and are not there.
  void add(std::span<const int32_t> rows) {
    std::vector<int32_t> all;
    all.reserve(rows.size() + static_cast<size_t>(count()));
    std::merge(rows.begin(), rows.end(), this->rows().begin(), this->rows().end(), std::back_inserter(all));
    numbers_ = std::move(all);
    taken_ = 0;
  }
  /// Takes the lowest, of which there must be so many. They can be read until the next add() or clear().
  std::span<const int32_t> take(size_t count) {
    taken_ += count;
    return std::span(numbers_).subspan(taken_ - count, count);
  }
  void clear() {
    numbers_.clear();
    taken_ = 0;
  }

 private:
  std::vector<int32_t> numbers_;  // ascending
  size_t taken_ = 0;              // of the first of them
};

}  // namespace hctr
