// The bar of a histogram.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace hctr {

/// Returns the histogram bar for the count `rows`. `most`: the largest count, whose bar is 40 characters long.
inline std::string bar(int64_t rows, int64_t most) {
  return std::string(static_cast<size_t>(
                         std::ceil(40.0 * static_cast<double>(rows) / static_cast<double>(std::max<int64_t>(most, 1)))),
                     '#');
}

}  // namespace hctr
