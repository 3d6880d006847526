#include "core/base/half.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"

namespace hctr::test {
namespace {

float as_float(uint32_t bits) { return std::bit_cast<float>(bits); }

/// The value of a binary16 code, by the definition of the format.
double meaning(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double magnitude = exponent == 0    ? std::ldexp(mantissa, -24)
                           : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                            : std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// The nearest binary16 code, found by bisection. Ties round to even.
uint16_t nearest_half(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double x = std::abs(static_cast<double>(value));
  if (x >= 65520) return sign | 0x7c00;  // the midpoint between 65504 and 65536 rounds to infinity
  uint16_t low = 0, high = 0x7c00;       // codes increase with the magnitude
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (meaning(middle) <= x ? low : high) = middle;
  }
  const double above = high == 0x7c00 ? 65536 : meaning(high);
  const double to_low = x - meaning(low), to_high = above - x;
  return sign | (to_low < to_high || (to_low == to_high && low % 2 == 0) ? low : high);
}

TEST(Half, EveryValueConvertsAsTheFormatDefinesAndBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    const float value = static_cast<float>(half);
    const double expected = meaning(half.bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(static_cast<float>(Half(value)))) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << bits;
      ASSERT_EQ(std::signbit(value), bits >= 32768) << bits;
      ASSERT_EQ(Half(value).bits, bits);
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  const auto check = [](float value) { ASSERT_EQ(Half(value).bits, nearest_half(value)) << value; };
  // tests the midpoints to both neighbours, and values next to the midpoints
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const double low = meaning(static_cast<uint16_t>(bits)),
                 high = bits + 1 == 0x7c00 ? 65536 : meaning(static_cast<uint16_t>(bits + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)}) {
      check(value);
      check(-value);
    }
  }
  for (uint64_t i = 0; i < 200000; ++i) {
    const float value = as_float(random_bits(3, 4, i));
    if (std::isfinite(value)) check(value);
  }
  EXPECT_EQ(Half(INFINITY).bits, 0x7c00);
  EXPECT_EQ(Half(-INFINITY).bits, 0xfc00);
}

TEST(BFloat16, EveryValueConvertsAndBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    BFloat16 half;
    half.bits = static_cast<uint16_t>(bits);
    const float value = static_cast<float>(half);
    ASSERT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(value))));
    else
      ASSERT_EQ(BFloat16(value).bits, bits);
  }
}

TEST(BFloat16, RoundsToNearestEven) {
  for (uint64_t i = 0; i < 200000; ++i) {
    const uint32_t bits = random_bits(5, 6, i);
    const float value = as_float(bits);
    if (!std::isfinite(value)) continue;
    const uint32_t low = bits >> 16, rest = bits & 0xffff;
    const uint32_t expected = rest > 0x8000 || (rest == 0x8000 && low % 2) ? low + 1 : low;
    ASSERT_EQ(BFloat16(value).bits, static_cast<uint16_t>(expected)) << value;
  }
  EXPECT_EQ(BFloat16(as_float(0x7f7fffff)).bits, 0x7f80) << "the largest float rounds to infinity";
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(as_float(0x7f800001))))) << "a NaN with low bits only stays a NaN";
}

}  // namespace
}  // namespace hctr::test
