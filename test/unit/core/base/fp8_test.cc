#include "core/base/fp8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hctr::test {
namespace {

/// Properties of a format, from table 1 of the FP8 paper.
struct Definition {
  int exponent_bits, mantissa_bits;
  double largest;

  /// The value of a code, ignoring the sign bit.
  double value(int code) const {
    const int bias = (1 << (exponent_bits - 1)) - 1, exponent = code >> mantissa_bits;
    const double fraction = (code & ((1 << mantissa_bits) - 1)) / static_cast<double>(1 << mantissa_bits);
    return exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  }
  int largest_code() const {
    int code = 0;
    while (value(code) < largest) ++code;
    return code;
  }
};
constexpr Definition kE4M3{4, 3, 448}, kE5M2{5, 2, 57344};

/// The nearest code, found by search. Ties round to even.
int nearest(const Definition& format, const std::vector<double>& values, double x) {
  const auto above = std::lower_bound(values.begin(), values.end(), x);
  if (above == values.end()) return format.largest_code();
  const auto code = static_cast<int>(above - values.begin());
  if (code == 0) return 0;
  const double up = *above - x, down = x - values[static_cast<size_t>(code - 1)];
  return up < down || (up == down && code % 2 == 0) ? code : code - 1;
}

template <class T>
void expect_format(const Definition& format) {
  std::vector<double> values;
  for (int code = 0; code <= format.largest_code(); ++code) values.push_back(format.value(code));
  EXPECT_EQ(values.back(), format.largest);
  EXPECT_EQ(T::kLargest, format.largest);
  EXPECT_EQ(std::ldexp(1.75, T::kLargestExponent), format.largest);
  for (int code = 0; code < 256; ++code) {
    T number;
    number.bits = static_cast<uint8_t>(code);
    const auto x = static_cast<float>(number);
    if ((code & 127) > format.largest_code()) {
      EXPECT_EQ(std::isinf(x), format.exponent_bits == 5 && (code & 127) == 0x7c) << code;
      EXPECT_FALSE(std::isfinite(x)) << code;
      continue;
    }
    EXPECT_EQ(std::abs(x), values[static_cast<size_t>(code & 127)]) << code;
    EXPECT_EQ(std::signbit(x), code >= 128) << code;
    EXPECT_EQ(T(x).bits, code) << x;
  }
  // Values of every order of magnitude. Values next to rounding boundaries follow below.
  for (uint64_t bits = 0; bits < 0x7f800000u; bits += 8191)
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits) | sign);
      ASSERT_EQ(T(x).bits, nearest(format, values, std::abs(x)) | (sign ? 128 : 0)) << x;
    }
  for (size_t code = 0; code + 1 < values.size(); ++code) {
    const auto between = static_cast<float>((values[code] + values[code + 1]) / 2);
    EXPECT_EQ(T(between).bits, code % 2 == 0 ? code : code + 1) << between;
    EXPECT_EQ(T(std::nextafter(between, 0.0f)).bits, code);
    EXPECT_EQ(T(std::nextafter(between, 1e9f)).bits, code + 1);
  }
}

TEST(Fp8, E4M3RoundsToTheNearestOfItsNumbers) { expect_format<Fp8E4M3>(kE4M3); }
TEST(Fp8, E5M2RoundsToTheNearestOfItsNumbers) { expect_format<Fp8E5M2>(kE5M2); }

TEST(Fp8, FiniteNumbersSaturateAndOthersBecomeNaN) {
  constexpr float kMost = std::numeric_limits<float>::max(), kInfinity = std::numeric_limits<float>::infinity();
  for (const float x : {448.0f, 465.0f, 1e6f, kMost}) {
    EXPECT_EQ(static_cast<float>(Fp8E4M3(x)), 448) << x;
    EXPECT_EQ(static_cast<float>(Fp8E4M3(-x)), -448) << x;
  }
  for (const float x : {57344.0f, 65536.0f, kMost}) {
    EXPECT_EQ(static_cast<float>(Fp8E5M2(x)), 57344) << x;
    EXPECT_EQ(static_cast<float>(Fp8E5M2(-x)), -57344) << x;
  }
  for (const float x : {kInfinity, -kInfinity, NAN, -NAN}) {
    EXPECT_TRUE(std::isnan(static_cast<float>(Fp8E4M3(x)))) << x;
    EXPECT_TRUE(std::isnan(static_cast<float>(Fp8E5M2(x)))) << x;
  }
}

}  // namespace
}  // namespace hctr::test
