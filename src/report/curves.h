// ROC curve, calibration and histograms from scores and labels of binary samples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "report/series.h"

namespace hctr {

/// A label below -0.5 means "no label": such rows are skipped in all functions here. A label above 0.5 is a positive.
struct RocCurve {
  /// x, y: fractions of negatives and of positives with at least this score; from (0, 0) to (1, 1)
  Series points;
  double area = 0;  ///< trapezoid area over all scores; NaN, with `points` empty, if all labels are of one class
};
/// Sorts the rows. `most`: approximate maximum of points in the result.
RocCurve roc_curve(std::span<const float> scores, std::span<const float> labels, size_t most);

/// A bucket of rows with similar scores.
struct CalibrationBucket {
  int64_t rows = 0;
  double mean_score = 0, mean_label = 0;
};
/// Buckets by score, with nearly equal numbers of rows. Equal scores are in one bucket, so there may be fewer buckets.
std::vector<CalibrationBucket> calibration(std::span<const float> scores, std::span<const float> labels,
                                           int64_t buckets);

/// Numbers of rows by score, in bins of equal width from `low` to `high`.
struct ScoreHistogram {
  double low = 0, high = 1;
  std::vector<int64_t> positives, negatives;
};
/// The range is [0, 1], or the range of the scores if some are outside. NaN scores are skipped.
ScoreHistogram score_histogram(std::span<const float> scores, std::span<const float> labels, size_t bins);

}  // namespace hctr
