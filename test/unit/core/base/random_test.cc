#include "core/base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace hctr::test {
namespace {

void expect_philox(uint64_t key, uint64_t hi, uint64_t lo, const std::vector<uint32_t>& values) {
  const Random4 r = philox(key, hi, lo);
  EXPECT_EQ(std::vector<uint32_t>(r.v, r.v + 4), values);
}

TEST(Philox, KnownAnswers) {  // philox4x32 with 10 rounds, from kat_vectors of the Random123 distribution
  expect_philox(0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  expect_philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  expect_philox(0x299f31d0'a4093822, 0x03707344'13198a2e, 0x85a308d3'243f6a88,
                {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST(RandomBits, ManyAtOnceEqualSingleCalls) {
  for (const uint64_t first :
       {uint64_t{0}, uint64_t{1}, uint64_t{6}, uint64_t{35}, (uint64_t{1} << 34) - 5, ~uint64_t{0} - 300})
    for (const int64_t count : {0, 1, 3, 31, 32, 33, 100, 257}) {
      std::vector<uint32_t> values(static_cast<size_t>(count)), expected;
      for (int64_t i = 0; i < count; ++i) expected.push_back(random_bits(11, 22, first + static_cast<uint64_t>(i)));
      random_bits(11, 22, first, count, values.data());
      EXPECT_EQ(values, expected) << count << " from " << first;
    }
}

TEST(RandomBits, AreUniform) {
  constexpr int kCount = 1 << 18, kBins = 64;
  std::vector<uint32_t> values(kCount);
  random_bits(random_key(1, random_stream("uniform")), 0, 0, kCount, values.data());
  std::vector<int> bins(kBins);
  double sum = 0;
  for (const uint32_t value : values) {
    const float u = unit_float(value);
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += static_cast<double>(u);
    ++bins[static_cast<size_t>(u * kBins)];
  }
  EXPECT_NEAR(sum / kCount, 0.5, 5 * std::sqrt(1.0 / 12 / kCount));
  double chi_squared = 0;
  for (const int hits : bins) chi_squared += std::pow(hits - kCount / kBins, 2) / (kCount / kBins);
  EXPECT_LT(chi_squared, 63 + 5 * std::sqrt(2.0 * 63));
}

TEST(RandomBits, StreamsSeedsAndStepsAreIndependent) {
  constexpr int64_t kCount = 20000;
  const auto sequence = [](uint64_t seed, const char* stream, uint64_t step) {
    std::vector<uint32_t> values(kCount);
    random_bits(random_key(seed, random_stream(stream)), step, 0, kCount, values.data());
    return values;
  };
  const std::vector<std::vector<uint32_t>> all = {sequence(0, "a", 0), sequence(0, "b", 0), sequence(1, "a", 0),
                                                  sequence(0, "a", 1), sequence(1, "b", 1)};
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      double correlation = 0;
      int64_t equal_bits = 0;
      for (size_t n = 0; n < kCount; ++n) {
        correlation +=
            (static_cast<double>(unit_float(all[i][n])) - 0.5) * (static_cast<double>(unit_float(all[j][n])) - 0.5);
        equal_bits += __builtin_popcount(~(all[i][n] ^ all[j][n]));
      }
      EXPECT_LT(std::abs(correlation / kCount), 5.0 / 12 / std::sqrt(kCount));
      EXPECT_NEAR(static_cast<double>(equal_bits) / (32 * kCount), 0.5, 2.5 / std::sqrt(32.0 * kCount));
    }
}

TEST(Streams, OfDifferentNamesDiffer) {
  std::set<uint64_t> streams;
  for (int i = 0; i < 1000; ++i) streams.insert(random_stream("dropout" + std::to_string(i)));
  EXPECT_EQ(streams.size(), 1000u);
  static_assert(random_stream("a") != random_stream("b"));
}

TEST(SymmetricFloat, StaysInItsBoundsAndIsCentred) {
  EXPECT_EQ(symmetric_float(0, 2), -2);
  EXPECT_LT(symmetric_float(~0u, 2), 2);
  EXPECT_EQ(symmetric_float(1u << 31, 2), 0);
}

TEST(StandardNormal, HasMeanZeroAndVarianceOne) {
  constexpr uint64_t kCount = 200000;
  double sum = 0, squares = 0, fourth = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    const Random4 r = philox(5, 0, i);
    const double x = standard_normal(r.v[0], r.v[1]);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / kCount, 0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1, 5 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(fourth / kCount, 3, 5 * std::sqrt(96.0 / kCount));
  EXPECT_TRUE(std::isfinite(standard_normal(0, 0)));
  EXPECT_TRUE(std::isfinite(standard_normal(~0u, ~0u)));
}

}  // namespace
}  // namespace hctr::test
