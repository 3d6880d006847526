#include "base/auc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "base/random.h"

namespace hctr {
namespace {

TEST(AreaUnderRoc, AgreesWithCountingAllPairs) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<double> scores;
    std::unique_ptr<bool[]> positive = std::make_unique<bool[]>(60);
    for (uint64_t i = 0; i < 60; ++i) {
      scores.push_back(static_cast<double>(mix64(seed * 100 + i) % 12));  // many ties
      positive[i] = mix64(i ^ seed << 20) % 3 == 0;
    }
    double wins = 0, pairs = 0;
    for (size_t i = 0; i < 60; ++i)
      for (size_t j = 0; j < 60; ++j)
        if (positive[i] && !positive[j]) {
          ++pairs;
          wins += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
        }
    EXPECT_DOUBLE_EQ(area_under_roc(scores, std::span<const bool>(positive.get(), 60)), wins / pairs);
  }
}

TEST(AreaUnderRoc, OfOneClassOrOfNoNumbersIsNoNumber) {
  const bool positive[] = {true, true};
  EXPECT_TRUE(std::isnan(area_under_roc(std::vector<double>{1, 2}, positive)));
  EXPECT_TRUE(std::isnan(area_under_roc(std::vector<float>{0.5f, NAN}, std::vector<float>{1, 0})));
}

}  // namespace
}  // namespace hctr
