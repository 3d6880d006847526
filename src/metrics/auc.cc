#include "metrics/auc.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/expect.h"

namespace hctr {

double area_under_roc(std::span<const double> scores, std::span<const bool> positive) {
  HCTR_EXPECT(scores.size() == positive.size(), scores.size(), " scores for ", positive.size(), " labels");
  std::vector<std::pair<double, bool>> items(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) return std::numeric_limits<double>::quiet_NaN();
    items[i] = {scores[i], positive[i]};
  }
  std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  double wins = 0;  // number of pairs in which the positive scores higher; ties count 0.5
  int64_t negatives = 0, positives = 0;
  for (size_t i = 0; i < items.size();) {
    int64_t here[2] = {0, 0};
    const size_t first = i;
    for (; i < items.size() && items[i].first == items[first].first; ++i) ++here[items[i].second];
    wins += static_cast<double>(here[1]) * (static_cast<double>(negatives) + 0.5 * static_cast<double>(here[0]));
    negatives += here[0];
    positives += here[1];
  }
  if (negatives == 0 || positives == 0) return std::numeric_limits<double>::quiet_NaN();
  return wins / static_cast<double>(negatives) / static_cast<double>(positives);
}

}  // namespace hctr
