// Random predictions, labels drawn with these probabilities, and a reference AUC by sorting.
#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/random.h"
#include "metrics/auc.h"

namespace hctr::test {

struct ScoredSamples {
  std::vector<float> scores, labels;
  std::vector<std::optional<int64_t>> groups;
};

inline double plain_area(std::span<const float> scores, std::span<const float> labels) {
  const std::vector<double> wide(scores.begin(), scores.end());
  const auto positive = std::make_unique<bool[]>(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) positive[i] = labels[i] > 0.5f;
  return area_under_roc(wide, {positive.get(), labels.size()});
}

/// Predictions with log-odds around `centre`, similar to predictions of a model. With `grid`, probabilities are
/// multiples of 1 / grid, so that many are equal.
inline ScoredSamples scored_samples(size_t n, uint64_t seed, double centre = -3, int grid = 0, uint64_t groups = 7) {
  ScoredSamples s;
  for (size_t i = 0; i < n; ++i) {
    const Random4 r = philox(seed, 0, i);
    double p = 1 / (1 + std::exp(-(centre + 1.2 * standard_normal(r.v[0], r.v[1]))));
    if (grid > 0) p = (std::floor(p * grid) + 1) / (grid + 2);
    s.scores.push_back(static_cast<float>(p));
    s.labels.push_back(static_cast<double>(unit_float(r.v[2])) < p ? 1.0f : 0.0f);
    s.groups.push_back(static_cast<int64_t>(r.v[3] % groups) - 3);
  }
  return s;
}

}  // namespace hctr::test
