#include "report/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/expect.h"

namespace hctr {
namespace {

struct Row {
  float score;
  float label;
};

/// Rows with labels, by descending score.
std::vector<Row> sorted_rows(std::span<const float> scores, std::span<const float> labels) {
  HCTR_EXPECT(scores.size() == labels.size(), scores.size(), " scores for ", labels.size(), " labels");
  std::vector<Row> rows;
  for (size_t i = 0; i < scores.size(); ++i)
    if (labels[i] >= -0.5f && !std::isnan(scores[i])) rows.push_back({scores[i], labels[i]});
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.score > b.score; });
  return rows;
}

}  // namespace

RocCurve roc_curve(std::span<const float> scores, std::span<const float> labels, size_t most) {
  const std::vector<Row> rows = sorted_rows(scores, labels);
  double positives = 0, negatives = 0;
  for (const Row& row : rows) ++(row.label > 0.5f ? positives : negatives);
  if (positives == 0 || negatives == 0) return {{}, std::numeric_limits<double>::quiet_NaN()};
  Series all = {{0, 0}};
  double area = 0, above_p = 0, above_n = 0;
  for (size_t i = 0; i < rows.size();) {
    const double p = above_p, n = above_n;
    const float score = rows[i].score;
    for (; i < rows.size() && rows[i].score == score; ++i) ++(rows[i].label > 0.5f ? above_p : above_n);
    area += (above_n - n) * (above_p + p) / 2;
    all.push_back({above_n / negatives, above_p / positives});
  }
  RocCurve curve{{}, area / positives / negatives};
  // Select points by distance along x + y, which grows from 0 to 2: steep and flat parts of the curve then get equally
  // many points.
  for (size_t i = 0; i < all.size(); ++i) {
    const double along = all[i].x + all[i].y;
    const double last = curve.points.empty() ? -1 : curve.points.back().x + curve.points.back().y;
    if (i == 0 || i + 1 == all.size() || along - last >= 2.0 / static_cast<double>(most))
      curve.points.push_back(all[i]);
  }
  return curve;
}

std::vector<CalibrationBucket> calibration(std::span<const float> scores, std::span<const float> labels,
                                           int64_t buckets) {
  std::vector<Row> rows = sorted_rows(scores, labels);
  std::reverse(rows.begin(), rows.end());
  const auto count = static_cast<int64_t>(rows.size());
  std::vector<CalibrationBucket> all;
  for (int64_t i = 0, b = 1; i < count; ++b) {
    int64_t end = std::max(i + 1, count * b / buckets);
    if (b > buckets) end = count;
    while (end < count && rows[static_cast<size_t>(end)].score == rows[static_cast<size_t>(end - 1)].score) ++end;
    if (end <= i) continue;
    CalibrationBucket bucket{.rows = end - i};
    for (; i < end; ++i) {
      bucket.mean_score += rows[static_cast<size_t>(i)].score;
      bucket.mean_label += rows[static_cast<size_t>(i)].label;
    }
    bucket.mean_score /= static_cast<double>(bucket.rows);
    bucket.mean_label /= static_cast<double>(bucket.rows);
    all.push_back(bucket);
    while (b < buckets && count * (b + 1) / buckets <= i) ++b;  // skips buckets that are already filled by equal scores
  }
  return all;
}

ScoreHistogram score_histogram(std::span<const float> scores, std::span<const float> labels, size_t bins) {
  const std::vector<Row> rows = sorted_rows(scores, labels);
  ScoreHistogram histogram{.positives = std::vector<int64_t>(bins), .negatives = std::vector<int64_t>(bins)};
  const auto finite = [](const Row& row) { return std::isfinite(row.score); };
  for (const Row& row : rows)
    if (finite(row)) {
      histogram.low = std::min<double>(histogram.low, row.score);
      histogram.high = std::max<double>(histogram.high, row.score);
    }
  for (const Row& row : rows) {
    if (!finite(row)) continue;
    const double place = (row.score - histogram.low) / (histogram.high - histogram.low) * static_cast<double>(bins);
    const size_t bin = std::min(bins - 1, static_cast<size_t>(place));
    ++(row.label > 0.5f ? histogram.positives : histogram.negatives)[bin];
  }
  return histogram;
}

}  // namespace hctr
