// Rounding of a float to the dtype that a table stores: to the nearest value, or stochastically to one of the two
// adjacent values so that the expectation is exact. Adjacent values of a two-byte weight are at least 2^-8 (bf16) or
// 2^-11 (fp16) of it apart; most updates are less than half of that and rounding to the nearest would lose them.
// Source: S. Gupta et al., "Deep learning with limited numerical precision", ICML 2015.
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

/// The nearest T. A finite number beyond the largest becomes the largest, so that one large step does not make a row
/// infinite. Infinities and NaN are kept, so that divergence is visible.
template <class T>
HCTR_HD T rounded_to_nearest(float x) {
  const float largest = kLargest<T>;
  const bool beyond = fabsf(x) > largest && fabsf(x) <= kLargest<float>;
  return T(beyond ? copysignf(largest, x) : x);
}

/// One of the two T around x, with probabilities whose expectation is x (exact; for subnormal fp16 within 2^-16 of a
/// step). x itself if T represents it; beyond the largest as above. `bits`: 16 random bits.
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
  if (magnitude >= 0x1p-14f) {  // the float has 13 bits more; the exponent biases differ by 112
    number = (std::bit_cast<uint32_t>(magnitude) + (bits & 0x1fffu) - 0x38000000u) >> 13;
  } else {  // whole steps of 2^-24
    const float steps = magnitude * 0x1p24f, whole = floorf(steps);
    number = static_cast<uint32_t>(whole) + (static_cast<float>(bits) < (steps - whole) * 65536.0f ? 1u : 0u);
  }
  Half out;
  out.bits = static_cast<uint16_t>(number | (std::bit_cast<uint32_t>(x) >> 16 & 0x8000u));
  return out;
}

/// The random bits that round one row in one update: a pure function of (seed, table, key, slot, update, array of the
/// row, element), independent of the row number of the key and of the order in which rows are updated.
struct RowRounding {
  uint64_t key = 0;  ///< random_key(random_key(seed, "rounding of the table"), update)
  int64_t row_key = 0;
  int32_t slot = 0;

  /// One draw, for elements e to e + 7 of array `which` (0 the vector, then the states), e a multiple of 8. bits_of()
  /// extracts the bits of an element.
  HCTR_HD Random4 eight(int which, int64_t e) const {
    return philox(key, static_cast<uint64_t>(row_key), counter(which, e));
  }
  /// The 16 bits of element i of a draw: the lower halves of the four words, then the upper halves.
  HCTR_HD static uint32_t bits_of(uint32_t word, int i) { return i < 4 ? word & 0xffffu : word >> 16; }
  /// The bits of elements [e, e + n), many times faster. Host only.
  void draw(int which, int64_t e, int64_t n, uint32_t* bits) const;

 private:
  HCTR_HD uint64_t counter(int which, int64_t e) const {
    return static_cast<uint64_t>(static_cast<uint32_t>(slot)) << 32 | static_cast<uint64_t>(which) << 30 |
           static_cast<uint64_t>(e >> 3);
  }
};

inline void RowRounding::draw(int which, int64_t e, int64_t n, uint32_t* bits) const {
  constexpr int64_t kDraws = 8;  // at a time
  uint32_t words[4 * kDraws];
  for (int64_t begin = 0; begin < n; begin += 8 * kDraws) {
    const int64_t some = n - begin < 8 * kDraws ? n - begin : 8 * kDraws;
    random_bits(key, static_cast<uint64_t>(row_key), counter(which, e + begin) * 4, (some + 7) / 8 * 4, words);
    for (int64_t i = 0; i < some; ++i) bits[begin + i] = bits_of(words[i / 8 * 4 + i % 4], static_cast<int>(i % 8));
  }
}

}  // namespace hctr::ops
