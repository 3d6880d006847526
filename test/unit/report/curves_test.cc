#include "report/curves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

#include "metrics/auc.h"
#include "metrics/metrics.h"

namespace hctr::test {
namespace {

struct Rows {
  std::vector<float> scores, labels;
};

/// Rows whose label is 1 with a probability equal to the score. `levels`: number of distinct scores.
Rows calibrated(int count, int levels) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> uniform;
  Rows rows;
  for (int i = 0; i < count; ++i) {
    const float score = std::floor(uniform(random) * static_cast<float>(levels)) / static_cast<float>(levels);
    rows.scores.push_back(score);
    rows.labels.push_back(uniform(random) < score ? 1.0f : 0.0f);
  }
  return rows;
}

TEST(RocCurve, ItsAreaIsTheMetricAlsoWithTies) {
  for (const int levels : {2, 7, 1000000}) {
    const Rows rows = calibrated(5000, levels);
    const std::vector<double> scores(rows.scores.begin(), rows.scores.end());
    const auto positive = std::make_unique<bool[]>(scores.size());
    for (size_t i = 0; i < scores.size(); ++i) positive[i] = rows.labels[i] > 0.5f;
    const RocCurve curve = roc_curve(rows.scores, rows.labels, 200);
    EXPECT_NEAR(curve.area, area_under_roc(scores, {positive.get(), scores.size()}), 1e-12) << levels;
    const auto metric = find_metric_type("AUC")->measure();
    metric->add({rows.scores, rows.labels, {}});
    EXPECT_NEAR(curve.area, metric->value(), 1e-12) << levels;
    // The area under the reduced points is nearly the area under all points.
    double area = 0;
    for (size_t i = 1; i < curve.points.size(); ++i)
      area += (curve.points[i].x - curve.points[i - 1].x) * (curve.points[i].y + curve.points[i - 1].y) / 2;
    EXPECT_NEAR(area, curve.area, 1e-4) << levels;
    EXPECT_LE(curve.points.size(), 202u);
    EXPECT_EQ(curve.points.front(), (Point{0, 0}));
    EXPECT_EQ(curve.points.back(), (Point{1, 1}));
  }
}

TEST(RocCurve, RowsWithoutALabelCountAsAbsent) {
  Rows rows = calibrated(1000, 100);
  const double area = roc_curve(rows.scores, rows.labels, 100).area;
  for (int i = 0; i < 300; ++i) {
    rows.scores.push_back(0.9f);
    rows.labels.push_back(-1);
  }
  EXPECT_EQ(roc_curve(rows.scores, rows.labels, 100).area, area);
}

TEST(RocCurve, OfOneClassOrOfNothingThereIsNone) {
  const std::vector<float> scores = {0.1f, 0.2f}, ones = {1, 1};
  EXPECT_TRUE(std::isnan(roc_curve(scores, ones, 10).area));
  EXPECT_TRUE(roc_curve(scores, ones, 10).points.empty());
  EXPECT_TRUE(std::isnan(roc_curve({}, {}, 10).area));
}

TEST(CalibrationBuckets, HoldEveryRowOnceAndAreEven) {
  const Rows rows = calibrated(5000, 1000000);
  const auto buckets = calibration(rows.scores, rows.labels, 20);
  ASSERT_EQ(buckets.size(), 20u);
  int64_t count = 0;
  double scores = 0, labels = 0, expected_scores = 0, expected_labels = 0;
  for (const CalibrationBucket& bucket : buckets) {
    EXPECT_EQ(bucket.rows, 250);
    // Labels are drawn with the scores as probabilities. The tolerance is five standard deviations.
    const double deviation = std::sqrt(bucket.mean_score * (1 - bucket.mean_score) / 250) + 1e-3;
    EXPECT_NEAR(bucket.mean_label, bucket.mean_score, 5 * deviation);
    count += bucket.rows;
    scores += bucket.mean_score * static_cast<double>(bucket.rows);
    labels += bucket.mean_label * static_cast<double>(bucket.rows);
  }
  for (size_t i = 0; i < rows.scores.size(); ++i) {
    expected_scores += rows.scores[i];
    expected_labels += rows.labels[i];
  }
  EXPECT_EQ(count, 5000);
  EXPECT_NEAR(scores, expected_scores, 1e-6);
  EXPECT_NEAR(labels, expected_labels, 1e-6);
}

TEST(CalibrationBuckets, EqualScoresAreInOneBucket) {
  const Rows rows = calibrated(1000, 3);
  const auto buckets = calibration(rows.scores, rows.labels, 20);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].rows + buckets[1].rows + buckets[2].rows, 1000);
  EXPECT_NEAR(buckets[1].mean_score, 1.0 / 3, 1e-6);
  EXPECT_TRUE(calibration({}, {}, 20).empty());
  EXPECT_EQ(calibration(std::vector<float>{0.5f}, std::vector<float>{1}, 20).size(), 1u);
}

TEST(Histogram, CountsEveryRowOfItsClass) {
  const std::vector<float> scores = {0, 0.05f, 0.999f, 1, 0.5f, 0.5f, NAN}, labels = {0, 1, 1, 1, 0, -1, 1};
  const ScoreHistogram histogram = score_histogram(scores, labels, 10);
  EXPECT_EQ(histogram.positives, (std::vector<int64_t>{1, 0, 0, 0, 0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(histogram.negatives, (std::vector<int64_t>{1, 0, 0, 0, 0, 1, 0, 0, 0, 0}));
  const ScoreHistogram wide = score_histogram(std::vector<float>{-4, 6}, std::vector<float>{0, 1}, 10);
  EXPECT_EQ(wide.low, -4);
  EXPECT_EQ(wide.high, 6);
  EXPECT_EQ(wide.positives.back(), 1);
}

}  // namespace
}  // namespace hctr::test
