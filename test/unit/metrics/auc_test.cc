#include "metrics/auc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "core/base/random.h"

namespace hctr {
namespace {

TEST(AreaUnderRoc, AgreesWithCountingAllPairs) {
  constexpr size_t n = 60;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<double> scores;
    const auto positive = std::make_unique<bool[]>(n);
    for (uint64_t i = 0; i < n; ++i) {
      scores.push_back(static_cast<double>(mix64(seed * 100 + i) % 12));  // only 12 different scores, so many are equal
      positive[i] = mix64(i ^ seed << 20) % 3 == 0;
    }
    double wins = 0, pairs = 0;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        if (positive[i] && !positive[j]) {
          ++pairs;
          wins += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
        }
    EXPECT_NEAR(area_under_roc(scores, {positive.get(), n}), wins / pairs, 1e-12);
  }
}

TEST(AreaUnderRoc, OneKindOfLabelHasNone) {
  const bool positive[] = {true, true};
  EXPECT_TRUE(std::isnan(area_under_roc(std::vector<double>{1, 2}, positive)));
}

}  // namespace
}  // namespace hctr
