// ROC curve, calibration and histograms from scores and labels of binary samples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "report/series.h"

namespace hctr {

/// Rows whose label is below -0.5 have none and are skipped everywhere. A label above 0.5 is a positive.
struct RocCurve {
  Series points;    ///< x: share of the negatives at or above a score, y: of the positives; from (0, 0) to (1, 1)
  double area = 0;  ///< area by trapezoids over all scores; NaN if labels are of one class, and then points is empty
};
/// Cost: a sort. `most`: points to keep.
RocCurve roc_curve(std::span<const float> scores, std::span<const float> labels, size_t most);

/// Rows of neighbouring scores.
struct CalibrationBucket {
  int64_t rows = 0;
  double mean_score = 0, mean_label = 0;
};
/// Buckets of nearly equally many rows, by score. Equal scores are in one bucket, so that there may be fewer.
std::vector<CalibrationBucket> calibration(std::span<const float> scores, std::span<const float> labels,
                                           int64_t buckets);

/// Rows by score, in equal steps from `low` to `high`.
struct ScoreHistogram {
  double low = 0, high = 1;
  std::vector<int64_t> positives, negatives;
};
/// The range is [0, 1], or that of the scores if some lie outside. Scores that are NaN are skipped.
ScoreHistogram score_histogram(std::span<const float> scores, std::span<const float> labels, size_t bins);

}  // namespace hctr
