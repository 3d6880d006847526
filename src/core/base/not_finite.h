// Finds NaN and infinities in floats.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

namespace hctr {

/// The index of the first value that is NaN or infinite, or -1.
inline int64_t find_not_finite(std::span<const float> values) {
  bool all_finite = true;
  for (const float value : values) all_finite &= std::isfinite(value);  // branch-free, so the loop vectorizes
  for (size_t i = 0; !all_finite && i < values.size(); ++i)
    if (!std::isfinite(values[i])) return static_cast<int64_t>(i);
  return -1;
}

}  // namespace hctr
