#include "score/best_metrics.h"

#include <gtest/gtest.h>

#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

const std::string kLogits = R"({"type": "InnerProduct", "bottom": "dense", "top": "a", "fc_param": {"num_output": 1}},
  {"type": "InnerProduct", "bottom": "dense", "top": "b", "fc_param": {"num_output": 2}}, )";

std::string bce(const std::string& label, const std::string& top, const std::string& more = "") {
  return R"({"type": "BinaryCrossEntropyLoss", "bottom": ["a", ")" + label + R"("], "top": ")" + top + "\"" + more +
         "}";
}
std::string slice(const std::string& bottom, const std::string& tops, const std::string& ranges) {
  return R"({"type": "Slice", "bottom": ")" + bottom + R"(", "top": )" + tops + R"(, "ranges": )" + ranges + "}, ";
}

/// The ground truth of three labels. Each label has a different metric.
BestPossible truth() {
  BestPossible best{.auc = 0.7, .average_loss = 0.2, .samples = 100};
  for (const double n : {0, 1, 2})
    best.labels.push_back({.auc = 0.6 + 0.1 * n, .average_loss = 0.1 + 0.1 * n, .samples = 100});
  return best;
}

void expect_metrics(const std::string& layers, int label_dim, const std::map<std::string, double>& expected,
                    const BestPossible& best = truth()) {
  const auto got = best_metrics(config_of(kLogits + layers, label_dim), best);
  std::string names;
  for (const auto& [name, value] : got) names += name + " ";
  ASSERT_EQ(got.size(), expected.size()) << names;
  for (const auto& [name, value] : expected) EXPECT_NEAR(got.at(name), value, 1e-12) << name;
}

TEST(BestMetrics, EachLossIsMeasuredOnTheColumnsItReads) {
  // The file has the columns in another order than the losses. One loss reads a column through two slices.
  const std::string mean_of_two =
      R"({"type": "MultiCrossEntropyLoss", "bottom": ["b", "first_two"], "top": "both", "target_weight": [1, 1]})";
  expect_metrics(slice("label", R"(["third", "first_two"])", "[[2, 3], [0, 2]]") +
                     slice("first_two", R"(["second", "first"])", "[[1, 2], [0, 1]]") + bce("third", "like") + ", " +
                     bce("second", "buy", R"(, "loss_weight": 0.5)") + ", " + bce("first", "click") + ", " +
                     mean_of_two,
                 3,
                 {{"AUC", 0.8},
                  {"AUC/buy", 0.7},
                  {"AUC/click", 0.6},
                  {"AUC/both", 0.65},
                  {"AverageLoss", 0.3 + 0.5 * 0.2 + 0.1 + 0.15},
                  {"AverageLoss/like", 0.3},
                  {"AverageLoss/buy", 0.2},
                  {"AverageLoss/click", 0.1},
                  {"AverageLoss/both", 0.15}});
}

TEST(BestMetrics, OneLabelHasTheMetricsOfTheTruth) {
  expect_metrics(
      bce("label", "loss") +
          R"(, {"type": "CrossEntropyLoss", "bottom": ["b", "label"], "top": "other", "loss_weight": 2})",
      1,
      {{"AUC", 0.8}, {"AUC/other", 0.8}, {"AverageLoss", 0.9}, {"AverageLoss/loss", 0.3}, {"AverageLoss/other", 0.3}},
      {.auc = 0.8, .average_loss = 0.3, .samples = 100});
}

TEST(BestMetrics, ALabelThatIsNoColumnOfTheDataHasNone) {
  const std::string products = slice("label", R"(["x", "y"])", "[[0, 1], [1, 2]]") +
                               R"({"type": "DotProduct", "bottom": ["x", "y"], "top": "xy"}, )";
  expect_metrics(products + bce("x", "click") + ", " + bce("xy", "both") +
                     R"(, {"type": "MultiCrossEntropyLoss", "bottom": ["b", "label"],
                "top": "all", "target_weight": [1, 1]})",
                 2, {{"AUC", 0.6}, {"AUC/all", 0.65}, {"AverageLoss/click", 0.1}, {"AverageLoss/all", 0.15}});
}

}  // namespace
}  // namespace hctr::test
