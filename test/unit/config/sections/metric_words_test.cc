// The values of eval_metrics in a config.
#include <gtest/gtest.h>

#include "config/sections/config.h"

namespace hctr::test {
namespace {

/// Errors and notes for a solver section with these fields, one per line.
std::string complaints(const std::string& fields, SolverSection* read = nullptr) {
  Problems problems;
  const Json config = Json::parse(R"({"solver": {"batchsize": 8, )" + fields +
                                      R"(}, "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 1}},
    "layers": [{"type": "Data", "source": "list.txt", "check": "None", "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 3},
                "sparse": [{"top": "user", "max_feature_num_per_sample": 1, "slot_num": 1}, {"top": "item", "max_feature_num_per_sample": 4, "slot_num": 4}]}]})",
                                  "test.json");
  const Config all = read_config(config, problems);
  if (read) *read = all.solver;
  std::string text;
  for (const auto* list : {&problems.errors(), &problems.notes()})
    for (const Problems::Entry& entry : *list) text += entry.pointer + ": " + entry.message + "\n";
  return text;
}

TEST(MetricWords, AreThoseOfTheTable) {
  for (const MetricType& type : metric_types()) {
    SolverSection solver;
    EXPECT_EQ(
        complaints(R"("group_by": {"input": "user"}, "eval_metrics": ["GroupedAUC", ")" + type.name + "\"]", &solver),
        "");
    ASSERT_EQ(solver.eval_metrics.metrics.size(), 2u);
    EXPECT_EQ(solver.eval_metrics.metrics[1].type, &type);
    EXPECT_FALSE(solver.eval_metrics.metrics[1].stop_at);
  }
}

TEST(MetricWords, MayEndTraining) {
  SolverSection solver;
  EXPECT_EQ(complaints(R"("eval_metrics": ["AUC:0.8025", "LogLoss:0.45"])", &solver), "");
  EXPECT_EQ(solver.eval_metrics.metrics[0].stop_at, 0.8025);
  EXPECT_EQ(solver.eval_metrics.metrics[1].stop_at, 0.45);
  EXPECT_EQ(to_json(solver.eval_metrics).text(), R"(["AUC:0.8025","AverageLoss:0.45"])");
}

TEST(MetricWords, AreTwoWhenNotGiven) {
  SolverSection solver;
  EXPECT_EQ(complaints(R"("max_iter": 1)", &solver), "");
  EXPECT_EQ(to_json(solver.eval_metrics).text(), R"(["AUC","AverageLoss"])");
}

TEST(MetricWords, OfOtherProgramsNameOurs) {
  for (const auto& [other, ours] : {std::pair("GAUC", "GroupedAUC"), std::pair("gauc:0.7", "GroupedAUC"),
                                    std::pair("roc_auc", "AUC"), std::pair("NE", "NormalizedEntropy")})
    EXPECT_NE(complaints(cat(R"("eval_metrics": [")", other, "\"]")).find(cat("did you mean \"", ours, "\"?")),
              std::string::npos)
        << other;
  EXPECT_NE(complaints(R"("early_stopping": {"metric": "GAUC", "patience": 2}, "eval_interval": 1)")
                .find("/early_stopping/metric: expected a metric; did you mean \"GroupedAUC\"?, found \"GAUC\""),
            std::string::npos);
}

TEST(MetricWords, ThatAreNoneAreNamedWithTheNearest) {
  EXPECT_EQ(
      complaints(R"("eval_metrics": ["AUC", "AverageLos"])"),
      "/solver/eval_metrics/1: expected a metric; did you mean \"AverageLoss\"?, found the string \"AverageLos\"\n");
  EXPECT_EQ(complaints(R"("eval_metrics": ["Logloss:0.4"])"),
            "/solver/eval_metrics/0: expected a metric; did you mean \"LogLoss\"?, found the string \"Logloss:0.4\"\n");
  std::vector<std::string> words;
  for (const MetricType& type : metric_types()) {
    words.push_back(type.name);
    words.insert(words.end(), type.aliases.begin(), type.aliases.end());
  }
  std::string list = words[0];
  for (size_t i = 1; i < words.size(); ++i) list += (i + 1 < words.size() ? ", " : " or ") + words[i];
  EXPECT_EQ(complaints(R"("eval_metrics": ["Perplexity"])"),
            "/solver/eval_metrics/0: expected a metric, which are " + list + ", found the string \"Perplexity\"\n");
  EXPECT_EQ(complaints(R"("eval_metrics": ["AUC", 3])"),
            "/solver/eval_metrics/1: expected a metric, a string, found the integer 3\n");
}

TEST(MetricWords, TakeThresholdsThatTheyCanReach) {
  for (const char* number : {"nan", " 0.8", "0x1p-1", "0.8x", ""})
    EXPECT_NE(complaints(cat(R"("eval_metrics": ["AUC:)", number, "\"]")).find("AUC:<threshold>, a number"),
              std::string::npos)
        << number;
  EXPECT_EQ(complaints(R"("eval_metrics": ["AUC:80"])"),
            "/solver/eval_metrics/0: expected AUC:<threshold>, a number, at least 0 and at most 1, found the string "
            "\"AUC:80\"\n");
  EXPECT_EQ(complaints(R"("eval_metrics": ["AverageLoss:"])"),
            "/solver/eval_metrics/0: expected AverageLoss:<threshold>, a number, at least 0, found the string "
            "\"AverageLoss:\"\n");
  EXPECT_EQ(complaints(R"("eval_metrics": ["Calibration:1"])"),
            "/solver/eval_metrics/0: expected Calibration without a threshold: the best value is 1, so no "
            "threshold can end training, found the string \"Calibration:1\"\n");
}

TEST(MetricWords, GroupsComeFromASlot) {
  EXPECT_EQ(complaints(R"("eval_metrics": ["GroupedAUC"])"),
            "/solver/eval_metrics/0: GroupedAUC needs \"group_by\" in the solver: the sparse input that contains "
            "the group of a sample\n");
  EXPECT_EQ(complaints(R"("eval_metrics": ["GroupedAUC"], "group_by": {"input": "item", "slot": 3})"), "");
  EXPECT_EQ(complaints(R"("eval_metrics": ["GroupedAUC"], "group_by": {"input": "item", "slot": 4})"),
            "/solver/group_by/slot: slot 4 of sparse input \"item\": its slots are 0 to 3\n");
  EXPECT_EQ(complaints(R"("eval_metrics": ["GroupedAUC"], "group_by": {"input": "usre"})"),
            "/solver/group_by/input: no sparse input is called \"usre\"; did you mean \"user\"?\n");
  EXPECT_EQ(complaints(R"("group_by": {"input": "user"})"),
            "/solver/group_by: has no effect: no metric in eval_metrics uses groups\n");
}

}  // namespace
}  // namespace hctr::test
