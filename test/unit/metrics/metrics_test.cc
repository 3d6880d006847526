#include "metrics/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "unit/metrics/scored_samples.h"

namespace hctr::test {
namespace {

using Groups = std::vector<std::optional<int64_t>>;

/// Computes the named metric for these samples, added in two parts.
double measured(const std::string& name, const std::vector<float>& predictions, const std::vector<float>& labels) {
  const MetricType* type = find_metric_type(name);
  EXPECT_TRUE(type && type->measure) << name;
  const auto measure = type->measure();
  const Groups groups(labels.size(), 1);
  const size_t half = labels.size() / 2;
  measure->add({{predictions.data(), half}, {labels.data(), half}, {groups.data(), half}});
  measure->add(
      {std::span(predictions).subspan(half), std::span(labels).subspan(half), std::span(groups).subspan(half)});
  return measure->value();
}

TEST(Metrics, MergedPartsGiveTheValueOfTheWhole) {
  const ScoredSamples s = scored_samples(3000, 5, 0, 60, 40);
  for (const MetricType& type : metric_types()) {
    if (!type.measure) continue;
    const auto whole = type.measure(), merged = type.measure();
    const auto part = [&](size_t begin, size_t end) {
      return Measure::Samples{std::span(s.scores).subspan(begin, end - begin),
                              std::span(s.labels).subspan(begin, end - begin),
                              std::span(s.groups).subspan(begin, end - begin)};
    };
    whole->add(part(0, 3000));
    merged->add(part(0, 700));
    for (const auto& [begin, end] : {std::pair<size_t, size_t>(700, 700), {700, 2900}, {2900, 3000}}) {
      const auto other = type.measure();
      other->add(part(begin, end));
      merged->merge(other->state());
    }
    EXPECT_NEAR(merged->value(), whole->value(), 1e-12 * std::abs(whole->value())) << type.name;
    const auto spoiled = type.measure();
    spoiled->add({std::vector<float>{NAN}, std::vector<float>{1}, Groups{1}});
    merged->merge(spoiled->state());
    EXPECT_TRUE(std::isnan(merged->value())) << type.name << " of a prediction that is not a number, elsewhere";
  }
}

TEST(Metrics, NormalizedEntropyIsTheLossOverThatOfTheMeanLabel) {
  const ScoredSamples s = scored_samples(300, 1, -1);
  double loss = 0, positives = 0;
  for (size_t i = 0; i < 300; ++i) {
    const auto p = static_cast<double>(s.scores[i]);
    loss -= s.labels[i] > 0 ? std::log(p) : std::log(1 - p);
    positives += static_cast<double>(s.labels[i]);
  }
  const double rate = positives / 300, entropy = -rate * std::log(rate) - (1 - rate) * std::log(1 - rate);
  EXPECT_NEAR(measured("NormalizedEntropy", s.scores, s.labels), loss / 300 / entropy, 1e-12);
  EXPECT_NEAR(measured("NormalizedEntropy", std::vector<float>(300, static_cast<float>(rate)), s.labels), 1, 1e-6);
  EXPECT_TRUE(std::isfinite(measured("NormalizedEntropy", {1, 0}, {0, 1})))
      << "certainty costs much, and not everything";
  EXPECT_TRUE(std::isnan(measured("NormalizedEntropy", {0.5f, 0.5f}, {1, 1})));
}

TEST(Metrics, CalibrationIsPredictedOverSeen) {
  EXPECT_DOUBLE_EQ(measured("Calibration", {0.5f, 0.25f, 0.25f}, {1, 0, 1}), 0.5);
  EXPECT_TRUE(std::isnan(measured("Calibration", {0.5f}, {0})));
}

TEST(Metrics, HitRateIsTheShareOfOnesAmongHighPredictions) {
  EXPECT_DOUBLE_EQ(measured("HitRate", {0.9f, 0.85f, 0.5f, 0.95f, 0.8f}, {1, 0, 1, 1, 0}), 2.0 / 3);
  EXPECT_TRUE(std::isnan(measured("HitRate", {0.5f, 0.7f}, {1, 0})));
}

TEST(Metrics, SmapeIsRelativeToTheMiddle) {
  EXPECT_DOUBLE_EQ(measured("SMAPE", {1, 3, 0}, {3, 3, 0}), 1.0 / 3);
  EXPECT_DOUBLE_EQ(measured("SMAPE", {0}, {5}), 2);
}

TEST(Metrics, AucAndNdcgReadTheRanking) {
  const ScoredSamples s = scored_samples(500, 2);
  EXPECT_NEAR(measured("AUC", s.scores, s.labels), plain_area(s.scores, s.labels), 1e-12);
  EXPECT_NEAR(measured("GroupedAUC", s.scores, s.labels), plain_area(s.scores, s.labels), 1e-12) << "one group";
  EXPECT_DOUBLE_EQ(measured("NDCG", s.labels, s.labels), 1);
}

TEST(Metrics, AreNotDefinedWithoutSamplesOrWithPredictionsThatAreNoNumbers) {
  for (const MetricType& type : metric_types()) {
    if (!type.measure) continue;
    EXPECT_TRUE(std::isnan(measured(type.name, {}, {}))) << type.name;
    EXPECT_TRUE(std::isnan(measured(type.name, {NAN, 0.9f}, {1, 0}))) << type.name;
    EXPECT_TRUE(std::isnan(measured(type.name, {0.9f, NAN}, {1, 0}))) << type.name;
  }
}

TEST(Metrics, HaveWordsOfTheirOwnAndABetterSide) {
  std::set<std::string> words;
  for (const MetricType& type : metric_types()) {
    EXPECT_TRUE(words.insert(type.name).second);
    for (const std::string& alias : type.aliases) EXPECT_TRUE(words.insert(alias).second);
    EXPECT_EQ(find_metric_type(type.name), &type);
    EXPECT_FALSE(type.reached(NAN, 0.5)) << type.name;
  }
  const MetricType &auc = *find_metric_type("AUC"), &loss = *find_metric_type("LogLoss");
  EXPECT_EQ(loss.name, "AverageLoss");
  EXPECT_EQ(find_metric_type("auc"), nullptr);
  EXPECT_TRUE(auc.reached(0.8, 0.8) && auc.reached(0.9, 0.8) && !auc.reached(0.7, 0.8));
  EXPECT_TRUE(loss.reached(0.4, 0.4) && loss.reached(0.3, 0.4) && !loss.reached(0.5, 0.4));
}

}  // namespace
}  // namespace hctr::test
