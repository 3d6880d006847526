#include "data/auc.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.h"

namespace hctr {

double exact_auc(std::span<const double> scores, std::span<const bool> positive) {
  HCTR_EXPECT(scores.size() == positive.size(), scores.size(), " scores for ", positive.size(), " labels");
  std::vector<std::pair<double, bool>> samples(scores.size());
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = {scores[i], positive[i]};
  std::sort(samples.begin(), samples.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  double pairs = 0;
  int64_t positives = 0, negatives = 0;
  for (size_t i = 0; i < samples.size();) {
    int64_t p = 0, n = 0;
    for (const double score = samples[i].first; i < samples.size() && samples[i].first == score; ++i) ++(samples[i].second ? p : n);
    pairs += static_cast<double>(p) * (static_cast<double>(negatives) + static_cast<double>(n) / 2);
    positives += p;
    negatives += n;
  }
  if (positives == 0 || negatives == 0)
    throw Error(Kind::data, cat("AUC needs labels of both kinds; there are ", positives, " positive and ", negatives, " negative ones"));
  return pairs / (static_cast<double>(positives) * static_cast<double>(negatives));
}

}  // namespace hctr
