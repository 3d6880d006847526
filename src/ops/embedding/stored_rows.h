// Chunks of a row in float, for arrays that may have two-byte elements; see stored_rows.cuh. For the CPU.
#pragma once

#include <algorithm>

#include "ops/embedding/embedding_rows.h"

namespace hctr::ops::cpu {

inline constexpr int64_t kStretch = 64;  // elements at a time, a multiple of 8

/// numbers[i] = number at + i of the array.
inline void load_stretch(const RowMemory& memory, int64_t at, int64_t n, float* numbers) {
  dispatch_float(memory.dtype, [&]<class T>() {
    const T* from = memory.as<const T>() + at;
    for (int64_t i = 0; i < n; ++i) numbers[i] = static_cast<float>(from[i]);
  });
}

/// The reverse, for at most kStretch elements, rounded stochastically if the array is not f32. `which` and `e`: see
/// RowRounding; e is a multiple of 8.
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
