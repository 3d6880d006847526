// ln(1 + n) of whole numbers, as integer features are read.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace hctr {

/// The double logarithm rounded to float; numbers below -1 give NaN, -1 gives -infinity. Small numbers, which are nearly all, come from a table.
inline float log_of_count(int64_t n) {
  constexpr int64_t kTable = 1 << 14;
  static const std::vector<float> table = [] {
    std::vector<float> logs;
    for (int64_t i = 0; i < kTable; ++i) logs.push_back(static_cast<float>(std::log1p(static_cast<double>(i))));
    return logs;
  }();
  if (static_cast<uint64_t>(n) < uint64_t{kTable}) return table[static_cast<size_t>(n)];
  return static_cast<float>(std::log1p(static_cast<double>(n)));
}

}  // namespace hctr
