#include "base/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/auc.h"
#include "base/random.h"
#include "hctr/error.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

struct Sample {
  std::vector<float> scores, labels;
  std::vector<int64_t> groups;
};

/// Scores on a grid, so that some are equal.
Sample sample(size_t n, uint64_t seed) {
  Sample s;
  for (size_t i = 0; i < n; ++i) {
    s.scores.push_back(std::floor(unit_float(random_bits(seed, 0, i)) * 50 + 1) / 52);
    s.labels.push_back(unit_float(random_bits(seed, 1, i)) < s.scores.back() ? 1.0f : 0.0f);
    s.groups.push_back(static_cast<int64_t>(random_bits(seed, 2, i) % 7) - 3);
  }
  return s;
}

TEST(Metrics, LogLossAndNormalizedEntropyAreTheirSums) {
  const Sample s = sample(300, 1);
  double loss = 0, positives = 0;
  for (size_t i = 0; i < 300; ++i) {
    const auto p = static_cast<double>(s.scores[i]);
    loss -= s.labels[i] > 0 ? std::log(p) : std::log(1 - p);
    positives += static_cast<double>(s.labels[i]);
  }
  const double rate = positives / 300, entropy = -rate * std::log(rate) - (1 - rate) * std::log(1 - rate);
  EXPECT_NEAR(log_loss(s.scores, s.labels), loss / 300, 1e-12);
  EXPECT_NEAR(normalized_entropy(s.scores, s.labels), loss / 300 / entropy, 1e-12);
  EXPECT_LT(normalized_entropy(s.scores, s.labels), 1);
}

TEST(Metrics, LogLossOfCertaintyIsFinite) {
  EXPECT_NEAR(log_loss(std::vector<float>{1, 0}, std::vector<float>{0, 0}), std::log(1e15) / 2, 0.1);
  EXPECT_NEAR(log_loss(std::vector<float>{1, 0}, std::vector<float>{1, 0}), 0, 1e-12);
}

TEST(Metrics, CalibrationIsPredictedOverSeen) {
  EXPECT_DOUBLE_EQ(calibration(std::vector<float>{0.5f, 0.25f, 0.25f}, std::vector<float>{1, 0, 1}), 0.5);
  EXPECT_TRUE(std::isnan(calibration(std::vector<float>{0.5f}, std::vector<float>{0})));
}

TEST(Metrics, GroupedAucIsTheMeanOfThoseOfGroups) {
  const Sample s = sample(200, 2);
  double total = 0, weight = 0;
  for (int64_t g = -3; g <= 3; ++g) {
    std::vector<float> scores, labels;
    for (size_t i = 0; i < 200; ++i)
      if (s.groups[i] == g) scores.push_back(s.scores[i]), labels.push_back(s.labels[i]);
    const double area = area_under_roc(scores, labels);
    if (std::isnan(area)) continue;
    total += area * static_cast<double>(labels.size());
    weight += static_cast<double>(labels.size());
  }
  EXPECT_NEAR(grouped_auc(s.scores, s.labels, s.groups), total / weight, 1e-12);
}

TEST(Metrics, GroupedAucLeavesOutGroupsOfOneKind) {
  const std::vector<float> scores = {0.9f, 0.1f, 0.2f, 0.3f}, labels = {1, 0, 1, 1};
  EXPECT_EQ(grouped_auc(scores, labels, std::vector<int64_t>{5, 5, 6, 6}), 1);
  EXPECT_TRUE(std::isnan(grouped_auc(scores, labels, std::vector<int64_t>{1, 2, 3, 4})));
}

TEST(Metrics, HitRateCountsPositivesAboveTheThreshold) {
  const std::vector<float> scores = {0.9f, 0.85f, 0.5f, 0.95f}, labels = {1, 0, 1, 1};
  EXPECT_DOUBLE_EQ(hit_rate(scores, labels), 2.0 / 3);
  EXPECT_DOUBLE_EQ(hit_rate(scores, labels, 0.4), 3.0 / 4);
  EXPECT_TRUE(std::isnan(hit_rate(scores, labels, 0.99)));
}

/// Over all orders that the scores allow: what sharing of ranks must equal.
TEST(Metrics, NdcgIsTheMeanOverTheOrdersOfEqualScores) {
  const std::vector<float> scores = {0.5f, 0.9f, 0.5f, 0.1f, 0.5f}, labels = {1, 0, 0, 1, 2};
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  double mean = 0, best = 0;
  int orders = 0;
  do {
    double gain = 0;
    bool falls = true;
    for (size_t i = 0; i < 5; ++i) {
      gain += static_cast<double>(labels[order[i]]) / std::log2(static_cast<double>(i) + 2);
      falls = falls && (i == 0 || scores[order[i - 1]] >= scores[order[i]]);
    }
    best = std::max(best, gain);
    if (falls) mean += gain, ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 6);
  EXPECT_NEAR(ndcg(scores, labels), mean / orders / best, 1e-12);
  EXPECT_DOUBLE_EQ(ndcg(labels, labels), 1);
  EXPECT_TRUE(std::isnan(ndcg(scores, std::vector<float>(5, 0))));
}

TEST(Metrics, SmapeIsRelativeToTheMiddle) {
  EXPECT_DOUBLE_EQ(smape(std::vector<float>{1, 3, 0}, std::vector<float>{3, 3, 0}), 1.0 / 3);
  EXPECT_DOUBLE_EQ(smape(std::vector<float>{0}, std::vector<float>{5}), 2);
}

TEST(Metrics, AreNotDefinedWithoutLabelsOrWithScoresThatAreNoNumbers) {
  const std::vector<float> none, nan = {NAN, 0.5f}, labels = {1, 0};
  const std::vector<int64_t> groups = {1, 1};
  for (const auto& metric : {log_loss, normalized_entropy, calibration, ndcg, smape}) {
    EXPECT_TRUE(std::isnan(metric(none, none)));
    EXPECT_TRUE(std::isnan(metric(nan, labels)));
  }
  EXPECT_TRUE(std::isnan(hit_rate(nan, labels)));
  EXPECT_TRUE(std::isnan(grouped_auc(nan, labels, groups)));
  EXPECT_TRUE(std::isnan(grouped_auc(none, none, {})));
}

TEST(Metrics, NeedAScoreForEachLabel) {
  const std::string message = message_of(Kind::bug, [] { log_loss(std::vector<float>{1}, std::vector<float>{1, 0}); });
  EXPECT_EQ(message.rfind("1 scores for 2 labels", 0), 0u) << message;
}

}  // namespace
}  // namespace hctr::test
