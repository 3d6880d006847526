#include "formats/model/table_summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/random.h"

namespace hctr::test {
namespace {

TEST(TableSummary, SaysWhatASortOfAllRowsWouldSay) {
  constexpr int64_t kRows = 5000, kDim = 3;
  SparseRows rows;
  std::vector<double> norms;
  for (int64_t i = 0; i < kRows; ++i) {
    rows.keys.push_back(i * 7 - 1000);
    rows.slots.push_back(static_cast<uint64_t>(i % 4));
    double squares = 0;
    for (int64_t e = 0; e < kDim; ++e) {
      const float x = symmetric_float(static_cast<uint32_t>(mix64(static_cast<uint64_t>(i * kDim + e))), 1.5f);
      rows.vectors.push_back(x);
      squares += static_cast<double>(x) * static_cast<double>(x);
    }
    norms.push_back(std::sqrt(squares));
  }
  TableSummary summary(kDim, 3);
  summary.add(rows);
  std::vector<double> sorted = norms;
  std::sort(sorted.begin(), sorted.end());
  double sum = 0;
  for (const double norm : norms) sum += norm;
  EXPECT_EQ(summary.rows(), kRows);
  EXPECT_EQ(summary.smallest_key(), -1000);
  EXPECT_EQ(summary.largest_key(), (kRows - 1) * 7 - 1000);
  EXPECT_EQ(summary.smallest_norm(), sorted.front());
  EXPECT_EQ(summary.largest_norm(), sorted.back());
  EXPECT_NEAR(summary.mean_norm(), sum / kRows, 1e-12);
  EXPECT_NEAR(summary.median_norm() / sorted[kRows / 2], 1, 0.012);
  for (const auto& [slot, count] : summary.rows_per_slot()) EXPECT_EQ(count, kRows / 4) << slot;
  int64_t in_bins = 0;
  for (const auto& bin : summary.histogram()) {
    in_bins += bin.rows;
    const auto inside = std::count_if(norms.begin(), norms.end(), [&](double n) {
      return n >= std::exp2(bin.exponent) && n < std::exp2(bin.exponent + 1);
    });
    EXPECT_EQ(bin.rows, inside) << "from 2^" << bin.exponent;
  }
  EXPECT_EQ(in_bins, kRows);
  ASSERT_EQ(summary.largest().size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(summary.largest()[i].norm, sorted[sorted.size() - 1 - i]);
}

TEST(TableSummary, ZerosAndWhatIsNoNumberAreCountedApart) {
  const float infinity = std::numeric_limits<float>::infinity();
  TableSummary summary(2, 5);
  summary.add({{1, 2, 3, 4}, {}, {0, 0, 3, 4, infinity, 0, std::nanf(""), 1}});
  EXPECT_EQ(summary.rows_of_zeros(), 1);
  EXPECT_EQ(summary.rows_not_finite(), 2);
  EXPECT_EQ(summary.smallest_norm(), 0);
  EXPECT_EQ(summary.largest_norm(), 5);
  EXPECT_EQ(summary.mean_norm(), 2.5);
  EXPECT_EQ(summary.largest()[0].key, 2);
}

TEST(TableSummary, OfNothing) {
  TableSummary summary(2, 5);
  EXPECT_EQ(summary.mean_norm(), 0);
  EXPECT_EQ(summary.median_norm(), 0);
  EXPECT_TRUE(summary.histogram().empty());
}

}  // namespace
}  // namespace hctr::test
