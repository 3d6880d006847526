// Rounding of a float to the storage dtype of a table: to nearest, or stochastically. Stochastic rounding selects one
// of the two adjacent values, with probabilities that make the expected result equal to the float. Adjacent values
// differ by at least 2^-8 of their magnitude in bf16, and by at least 2^-11 in fp16. Most weight updates are smaller
// than half of this difference, and rounding to nearest would lose such updates. Source: S. Gupta et al., "Deep
// learning with limited numerical precision", ICML 2015.
#pragma once

#include <cmath>

#include "core/base/half.h"
#include "core/base/random.h"

namespace hctr::ops {

/// The largest finite number of T.
template <class T>
inline constexpr float kLargest = 3.40282346638528859811704183484516925440e+38f;
template <>
inline constexpr float kLargest<Half> = 65504.0f;
template <>
inline constexpr float kLargest<BFloat16> = 0x1.fep127f;

/// Rounds to the nearest T. A finite value beyond the range becomes the largest finite T, so that one large step does
/// not make a row infinite. Infinities and NaN are kept, so that divergence stays visible.
template <class T>
HCTR_HD T rounded_to_nearest(float x) {
  const float largest = kLargest<T>;
  const bool beyond = fabsf(x) > largest && fabsf(x) <= kLargest<float>;
  return T(beyond ? copysignf(largest, x) : x);
}

/// Rounds x stochastically to one of the two adjacent values of type T. The expected result is x, except for subnormal
/// fp16, where the expected result differs from x by at most 2^-16 of the distance between the two values. Returns x
/// itself if T represents x. Values beyond the range are rounded as in rounded_to_nearest(). `bits`: 16 random bits.
template <class T>
HCTR_HD T rounded_at_random(float x, uint32_t bits);

template <>
HCTR_HD inline float rounded_at_random<float>(float x, uint32_t) {
  return x;
}

template <>
HCTR_HD inline BFloat16 rounded_at_random<BFloat16>(float x, uint32_t bits) {
  if (!(fabsf(x) < kLargest<BFloat16>)) return rounded_to_nearest<BFloat16>(x);
  BFloat16 out;
  out.bits = static_cast<uint16_t>((std::bit_cast<uint32_t>(x) + bits) >> 16);
  return out;
}

template <>
HCTR_HD inline Half rounded_at_random<Half>(float x, uint32_t bits) {
  const float magnitude = fabsf(x);
  if (!(magnitude < kLargest<Half>)) return rounded_to_nearest<Half>(x);
  uint32_t number;
  // normal fp16, where a float has 13 more mantissa bits; the exponent biases differ by 112
  if (magnitude >= 0x1p-14f) {
    number = (std::bit_cast<uint32_t>(magnitude) + (bits & 0x1fffu) - 0x38000000u) >> 13;
  } else {  // subnormal fp16: multiples of 2^-24
    const float steps = magnitude * 0x1p24f, whole = floorf(steps);
    number = static_cast<uint32_t>(whole) + (static_cast<float>(bits) < (steps - whole) * 65536.0f ? 1u : 0u);
  }
  Half out;
  out.bits = static_cast<uint16_t>(number | (std::bit_cast<uint32_t>(x) >> 16 & 0x8000u));
  return out;
}

/// The random bits that round one row in one update: a pure function of (seed, table, key, slot, update, array of the
/// row, element). The bits do not depend on the key's row number or on the order of row updates.
struct RowRounding {
  uint64_t key = 0;  ///< random_key(random_key(seed, "rounding of the table"), update)
  int64_t row_key = 0;
  int32_t slot = 0;

  /// One draw: the random bits for elements e to e + 7 of array `which` (0: the vector, then the optimizer states). e
  /// is a multiple of 8. bits_of() extracts the bits of one element.
  HCTR_HD Random4 eight(int which, int64_t e) const {
    return philox(key, static_cast<uint64_t>(row_key), counter(which, e));
  }
  /// Extracts the 16 bits of element i from word i % 4 of a draw: the lower half for i < 4, else the upper half.
  HCTR_HD static uint32_t bits_of(uint32_t word, int i) { return i < 4 ? word & 0xffffu : word >> 16; }
  /// Writes the bits of elements [e, e + n), vectorized over draws. Host only.
  void draw(int which, int64_t e, int64_t n, uint32_t* bits) const;

 private:
  HCTR_HD uint64_t counter(int which, int64_t e) const {
    return static_cast<uint64_t>(static_cast<uint32_t>(slot)) << 32 | static_cast<uint64_t>(which) << 30 |
           static_cast<uint64_t>(e >> 3);
  }
};

inline void RowRounding::draw(int which, int64_t e, int64_t n, uint32_t* bits) const {
  constexpr int64_t kDraws = 8;  // draws per iteration
  uint32_t words[4 * kDraws];
  for (int64_t begin = 0; begin < n; begin += 8 * kDraws) {
    const int64_t some = n - begin < 8 * kDraws ? n - begin : 8 * kDraws;
    random_bits(key, static_cast<uint64_t>(row_key), counter(which, e + begin) * 4, (some + 7) / 8 * 4, words);
    for (int64_t i = 0; i < some; ++i) bits[begin + i] = bits_of(words[i / 8 * 4 + i % 4], static_cast<int>(i % 8));
  }
}

}  // namespace hctr::ops
