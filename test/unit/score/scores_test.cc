// Messages about undefined metrics of predictions, on one and on several ranks.
#include "score/scores.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hctr::test {
namespace {

MetricList metrics_of(const std::vector<std::string>& names) {
  MetricList list;
  for (const std::string& name : names) list.metrics.push_back({find_metric_type(name), std::nullopt});
  return list;
}

/// A row with a prediction, a label and a group.
struct Row {
  float prediction, label;
  std::optional<int64_t> group = {};
};
void add(Scores& scores, const std::vector<Row>& rows) {
  std::vector<float> predictions, labels;
  std::vector<std::optional<int64_t>> groups;
  for (const Row& row : rows) {
    predictions.push_back(row.prediction);
    labels.push_back(row.label);
    groups.push_back(row.group);
  }
  const auto count = static_cast<int64_t>(rows.size());
  scores.add({predictions.data(), {count, 1}, 1}, {labels.data(), {count, 1}, 1}, groups, count);
}
std::map<std::string, std::string> undefined(const std::vector<Row>& rows) {
  Scores scores(metrics_of({"AUC", "GroupedAUC", "HitRate", "Calibration", "NormalizedEntropy"}), 1);
  add(scores, rows);
  for (const auto& [name, value] : scores.values())
    EXPECT_EQ(std::isnan(value), scores.undefined().contains(name)) << name;
  return scores.undefined();
}

TEST(UndefinedMetrics, NameTheLabelThatAllSamplesHave) {
  const auto zeros = undefined({{0.1f, 0, 1}, {0.9f, 0, 1}, {0.4f, 0, 2}});
  const std::string all = "all 3 evaluation samples have label 0";
  EXPECT_EQ(zeros, (std::map<std::string, std::string>{
                       {"AUC", all}, {"GroupedAUC", all}, {"Calibration", all}, {"NormalizedEntropy", all}}));
  const auto ones = undefined({{0.1f, 1, 1}});
  EXPECT_EQ(ones.at("AUC"), "the only evaluation sample has label 1");
  EXPECT_EQ(ones.at("HitRate"), "no prediction is above 0.8");
  EXPECT_FALSE(ones.contains("Calibration"));
  EXPECT_EQ(undefined({{0.9f, 0.25f, 1}, {0.9f, 0.5f, 1}}).at("AUC"), "all 2 evaluation samples have labels up to 0.5");
}

TEST(UndefinedMetrics, NameGroupsMissingLabelsAndPredictionsThatAreNoNumbers) {
  EXPECT_EQ(undefined({{0.1f, 0, 1}, {0.9f, 1, 2}, {0.9f, 1, 2}}),
            (std::map<std::string, std::string>{{"GroupedAUC", "no group has labels of both classes"}}));
  EXPECT_EQ(undefined({{0.1f, -1, 1}, {0.9f, -1, 2}}).at("AUC"), "no evaluation sample has a label");
  EXPECT_EQ(undefined({{std::nanf(""), 0, 1}, {0.9f, 1, 1}}).at("AUC"), "1 of 2 predictions is not a number");
}

TEST(UndefinedMetrics, NameSamplesThatHaveNoGroup) {
  Scores scores(metrics_of({"AUC", "GroupedAUC"}), 1);
  add(scores, {{0.1f, 0}, {0.9f, 1}});
  scores.values();
  EXPECT_EQ(scores.facts().without_group, 2);
  EXPECT_EQ(scores.undefined(),
            (std::map<std::string, std::string>{
                {"GroupedAUC", "no evaluation sample has a group: the slot named by \"group_by\" is always empty"}}));
}

TEST(UndefinedMetrics, OfSeveralRanksCountTheSamplesOfAll) {
  Scores one(metrics_of({"AUC"}), 1), other(metrics_of({"AUC"}), 1), third(metrics_of({"AUC"}), 1);
  add(one, {{0.1f, 0}});
  add(other, {{0.2f, 0}, {0.3f, 0}});
  add(third, {{0.2f, 1}});
  one.merge(other.state());
  EXPECT_TRUE(std::isnan(one.values().at("AUC")));
  EXPECT_EQ(one.undefined().at("AUC"), "all 3 evaluation samples have label 0");
  one.merge(third.state());
  EXPECT_EQ(one.values().at("AUC"), 0.5);
  EXPECT_TRUE(one.undefined().empty());
}

TEST(UndefinedMetrics, OfSeveralLabelsNameEach) {
  Scores scores(metrics_of({"AUC"}), 2);
  const std::vector<float> predictions = {0.1f, 0.2f, 0.3f, 0.4f}, labels = {0, 1, 0, -1};
  scores.add({predictions.data(), {2, 2}, 2}, {labels.data(), {2, 2}, 2}, {}, 2);
  scores.values();
  EXPECT_EQ(scores.undefined().at("AUC"),
            "label 0: all 2 evaluation samples have label 0; label 1: the only evaluation sample has label 1");
}

}  // namespace
}  // namespace hctr::test
