// Stochastic rounding to two-byte types: the result is an adjacent value, with the right probability. The random bits
// depend on key, slot, update, array and element.
#include "ops/common/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <type_traits>
#include <vector>

namespace hctr::ops {
namespace {

template <class T>
class Rounding : public testing::Test {};
using Types = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(Rounding, Types);

/// The value of a bit pattern of T, as a float.
template <class T>
float value(uint32_t bits) {
  T number;
  number.bits = static_cast<uint16_t>(bits);
  return static_cast<float>(number);
}

/// Bit patterns of finite magnitudes: some for every exponent, and subnormals.
template <class T>
std::vector<uint32_t> patterns() {
  std::vector<uint32_t> out;
  for (uint32_t bits = 0; std::isfinite(value<T>(bits + 1)); bits += 1 + bits / 37 % 29) out.push_back(bits);
  return out;
}

TYPED_TEST(Rounding, DoesNotChangeRepresentableNumbers) {
  for (const uint32_t pattern : patterns<TypeParam>())
    for (const uint32_t sign : {0u, 0x8000u})
      for (const uint32_t bits : {0u, 1u, 0x7fffu, 0xffffu}) {
        const float x = value<TypeParam>(pattern | sign);
        ASSERT_EQ(rounded_at_random<TypeParam>(x, bits).bits, pattern | sign) << x;
        ASSERT_EQ(rounded_to_nearest<TypeParam>(x).bits, pattern | sign) << x;
      }
}

TYPED_TEST(Rounding, GivesOneOfTheTwoAdjacentValuesWithTheRightProbability) {
  for (const uint32_t pattern : patterns<TypeParam>()) {
    const double low = value<TypeParam>(pattern), high = value<TypeParam>(pattern + 1);
    for (const double part : {0.25, 0.5, 0.8125})
      for (const float sign : {1.0f, -1.0f}) {
        const auto x = static_cast<float>(low + part * (high - low));
        if (static_cast<double>(x) == low || static_cast<double>(x) == high)
          continue;  // x coincides with one of the neighbours
        const double chance = (static_cast<double>(x) - low) / (high - low);
        constexpr uint32_t kDraws = 1024;
        int64_t up = 0;
        for (uint32_t i = 0; i < kDraws;
             ++i) {  // i * 40503 (golden ratio) distributes the 16 bits evenly, in the upper and in the lower bits
          const float y = static_cast<float>(rounded_at_random<TypeParam>(sign * x, i * 40503 & 0xffff)) * sign;
          ASSERT_TRUE(static_cast<double>(y) == low || static_cast<double>(y) == high) << x << " became " << y;
          up += static_cast<double>(y) == high;
        }
        ASSERT_NEAR(static_cast<double>(up) / kDraws, chance, 0.01) << x;
      }
  }
}

TYPED_TEST(Rounding, KeepsTheMean) {
  // Rounds values such as 0.1 many times: the mean is within 5 standard deviations.
  const uint64_t key = random_key(5, random_stream("a test"));
  for (const float x : {0.1f, -0.0123f, 3.3e-6f, 777.77f, 1e-7f}) {
    const double below = static_cast<double>(static_cast<float>(rounded_at_random<TypeParam>(x, 0)));
    const double above = static_cast<double>(static_cast<float>(rounded_at_random<TypeParam>(x, 0xffff)));
    constexpr int64_t kDraws = 100000;
    double sum = 0;
    for (int64_t i = 0; i < kDraws; i += 8) {
      uint32_t bits[8];
      RowRounding{key, i, 3}.draw(0, 0, 8, bits);
      for (const uint32_t each : bits)
        sum += static_cast<double>(static_cast<float>(rounded_at_random<TypeParam>(x, each)));
    }
    const double bound = 5 * 0.5 * std::abs(above - below) / std::sqrt(static_cast<double>(kDraws));
    EXPECT_NEAR(sum / kDraws, static_cast<double>(x), bound + 1e-12) << x;
    EXPECT_NE(below, above) << x;
  }
}

TYPED_TEST(Rounding, SaturatesAtTheLargestAndKeepsInfinitiesAndNan) {
  const float largest = kLargest<TypeParam>, infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(largest, value<TypeParam>(std::is_same_v<TypeParam, Half> ? 0x7bff : 0x7f7f));
  for (const float sign : {1.0f, -1.0f})
    for (const uint32_t bits : {0u, 0xffffu}) {
      for (const float x : {largest, std::nextafter(largest, infinity), std::numeric_limits<float>::max()}) {
        EXPECT_EQ(static_cast<float>(rounded_at_random<TypeParam>(sign * x, bits)), sign * largest);
        EXPECT_EQ(static_cast<float>(rounded_to_nearest<TypeParam>(sign * x)), sign * largest);
      }
      EXPECT_LE(static_cast<float>(rounded_at_random<TypeParam>(std::nextafter(largest, 0.0f), bits)), largest);
      EXPECT_EQ(static_cast<float>(rounded_at_random<TypeParam>(sign * infinity, bits)), sign * infinity);
      EXPECT_EQ(static_cast<float>(rounded_to_nearest<TypeParam>(sign * infinity)), sign * infinity);
    }
  EXPECT_TRUE(std::isnan(static_cast<float>(rounded_at_random<TypeParam>(NAN, 0xffff))));
  EXPECT_TRUE(std::isnan(static_cast<float>(rounded_to_nearest<TypeParam>(NAN))));
}

TEST(RowRoundingTest, EveryKeySlotUpdateArrayAndElementHasItsOwnBits) {
  const uint64_t table = random_key(5, random_stream("rounding:wide"));
  std::set<std::vector<uint32_t>> seen;
  int64_t draws = 0;
  const auto add = [&](int64_t update, int64_t key, int32_t slot, int which, int64_t e) {
    std::vector<uint32_t> all(8);
    RowRounding{random_key(table, static_cast<uint64_t>(update)), key, slot}.draw(which, e, 8, all.data());
    for (const uint32_t each : all) ASSERT_LT(each, 65536u);
    seen.insert(all);
    ++draws;
  };
  for (int64_t update = 0; update < 3; ++update)
    for (const int64_t key : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{1} << 40})
      for (int32_t slot = 0; slot < 3; ++slot)
        for (int which = 0; which < 3; ++which)
          for (int64_t e = 0; e < 2048; e += 8) add(update, key, slot, which, e);
  EXPECT_EQ(static_cast<int64_t>(seen.size()), draws);
}

TEST(RowRoundingTest, ARangeIsDrawnEightByEight) {
  const RowRounding rounding{random_key(1, 2), -77, 25};
  for (const int64_t n : {1, 3, 4, 8, 17, 64, 200})
    for (int which = 0; which < 3; ++which) {
      uint32_t bits[200];
      rounding.draw(which, 128, n, bits);
      for (int64_t i = 0; i < n; ++i) {
        const Random4 draw = rounding.eight(which, 128 + i / 8 * 8);
        ASSERT_EQ(bits[i], RowRounding::bits_of(draw.v[i % 4], static_cast<int>(i % 8))) << i << " of " << n;
      }
    }
}

TEST(RowRoundingTest, TheBitsOfOneDrawDependNeitherOnEachOtherNorOnTheNext) {
  // Interprets 16 bits as a number from -1 to 1. If the numbers are independent, products have mean 0 and variance 1/9.
  // The tolerance is 5 standard deviations.
  const uint64_t table = random_key(5, random_stream("rounding:wide"));
  constexpr int kNumbers = 24, kDraws = 20000;  // one draw yields 8 numbers, so 24 numbers need three
  std::vector<double> products(kNumbers * kNumbers), sums(kNumbers);
  for (int64_t row = 0; row < kDraws; ++row) {
    uint32_t bits[kNumbers];
    RowRounding{table, row, 0}.draw(0, 0, kNumbers, bits);
    double x[kNumbers];
    for (int i = 0; i < kNumbers; ++i) x[i] = (static_cast<double>(bits[i]) + 0.5) / 32768 - 1;
    for (int i = 0; i < kNumbers; ++i) {
      sums[static_cast<size_t>(i)] += x[i];
      for (int j = 0; j < i; ++j) products[static_cast<size_t>(i * kNumbers + j)] += x[i] * x[j];
    }
  }
  for (int i = 0; i < kNumbers; ++i) {
    EXPECT_LT(std::abs(sums[static_cast<size_t>(i)]), 5 * std::sqrt(kDraws / 3.0)) << i;
    for (int j = 0; j < i; ++j)
      EXPECT_LT(std::abs(products[static_cast<size_t>(i * kNumbers + j)]), 5 * std::sqrt(kDraws / 9.0))
          << i << ", " << j;
  }
}

}  // namespace
}  // namespace hctr::ops
