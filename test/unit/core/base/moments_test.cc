#include "core/base/moments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/random.h"

namespace hctr::test {
namespace {

TEST(Moments, AreThoseOfTheFormulas) {
  Moments moments;
  std::vector<double> numbers;
  for (uint64_t i = 0; i < 500; ++i) numbers.push_back(1e6 + std::exp(static_cast<double>(mix64(i) % 100) / 20));
  double mean = 0, m2 = 0, m3 = 0;
  for (const double x : numbers) mean += x / static_cast<double>(numbers.size());
  for (const double x : numbers) {
    moments.add(x);
    m2 += std::pow(x - mean, 2);
    m3 += std::pow(x - mean, 3);
  }
  const auto n = static_cast<double>(numbers.size());
  EXPECT_EQ(moments.count(), 500);
  EXPECT_NEAR(moments.mean(), mean, 1e-6);
  EXPECT_NEAR(moments.deviation(), std::sqrt(m2 / n), 1e-6);
  EXPECT_NEAR(moments.skewness(), m3 / n / std::pow(m2 / n, 1.5), 1e-6);
}

TEST(Moments, OfEqualNumbersAndOfNoneAreZero) {
  Moments moments;
  EXPECT_EQ(moments.deviation(), 0);
  EXPECT_EQ(moments.skewness(), 0);
  for (int i = 0; i < 7; ++i) moments.add(0.1);
  EXPECT_EQ(moments.mean(), 0.1);
  EXPECT_EQ(moments.deviation(), 0);
  EXPECT_EQ(moments.skewness(), 0);
}

}  // namespace
}  // namespace hctr::test
