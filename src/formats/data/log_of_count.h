// ln(1 + n) of integers, the transform of integer features.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace hctr {

/// A table of ln(1 + n) for small n, the most common case.
class LogTable {
 public:
  static constexpr int64_t kSize = 1 << 14;
  LogTable() {
    for (int64_t i = 0; i < kSize; ++i) logs_.push_back(static_cast<float>(std::log1p(static_cast<double>(i))));
  }
  static const LogTable& get() {
    static const LogTable table;
    return table;
  }
  float operator()(int64_t n) const {
    if (static_cast<uint64_t>(n) < uint64_t{kSize}) [[likely]]
      return logs_[static_cast<size_t>(n)];
    return static_cast<float>(std::log1p(static_cast<double>(n)));
  }

 private:
  std::vector<float> logs_;
};

/// ln(1 + n) in double precision, rounded to float. -1 gives -infinity, smaller numbers NaN. For many numbers, call
/// LogTable::get() once.
inline float log_of_count(int64_t n) { return LogTable::get()(n); }

}  // namespace hctr
