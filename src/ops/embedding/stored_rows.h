// CPU loads and stores of row segments as float, for arrays that may have two-byte elements. stored_rows.cuh has the
// GPU version.
#pragma once

#include <algorithm>

#include "ops/embedding/embedding_rows.h"

namespace hctr::ops::cpu {

inline constexpr int64_t kStretch = 64;  // elements per segment, a multiple of 8

/// Loads numbers[i] = array[at + i] as float, for i < n.
inline void load_stretch(const RowMemory& memory, int64_t at, int64_t n, float* numbers) {
  dispatch_float(memory.dtype, [&]<class T>() {
    const T* from = memory.as<const T>() + at;
    for (int64_t i = 0; i < n; ++i) numbers[i] = static_cast<float>(from[i]);
  });
}

/// Stores array[at + i] = numbers[i], for i < n <= kStretch. Rounds stochastically unless the array is f32. For `which`
/// and `e` see RowRounding; e is a multiple of 8.
inline void store_stretch(const RowMemory& memory, int64_t at, int64_t n, const float* numbers,
                          const RowRounding& rounding, int which, int64_t e) {
  dispatch_float(memory.dtype, [&]<class T>() {
    T* to = memory.as<T>() + at;
    if constexpr (std::is_same_v<T, float>) {
      std::copy(numbers, numbers + n, to);
    } else {
      uint32_t bits[kStretch];
      rounding.draw(which, e, n, bits);
      for (int64_t i = 0; i < n; ++i) to[i] = rounded_at_random<T>(numbers[i], bits[i]);
    }
  });
}

}  // namespace hctr::ops::cpu
