// Normal random values, compared with the error function at quantiles over the whole distribution.
#include "ops/embedding/normal_value.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hctr::ops {
namespace {

TEST(NormalValue, HasTheShareOfItsBitsBelowIt) {
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 99'991) {
    const double x = static_cast<double>(normal_float(static_cast<uint32_t>(bits)));
    const double share = (static_cast<double>(bits) + 0.5) / 4294967296.0, below = 0.5 * std::erfc(-x / std::sqrt(2.0));
    const double tail = std::min(share, 1 - share);
    ASSERT_NEAR(below, share, 4e-6 * tail) << bits;
  }
  EXPECT_EQ(normal_float(0), -normal_float(UINT32_MAX));
}

TEST(NormalValue, LogarithmIsThatOfTheLibrary) {
  for (double x = 1e-10; x < 1; x *= 1.0173) EXPECT_NEAR(portable_log(x), std::log(x), 1e-13 * (1 - std::log(x))) << x;
}

}  // namespace
}  // namespace hctr::ops
