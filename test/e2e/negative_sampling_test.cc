// "negative_sampling" in whole runs: predictions are calibrated for all samples, and other results do not change.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <sstream>

#include "core/base/expect.h"
#include "core/base/random.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

/// Click probability of each city.
constexpr double kRates[] = {0.004, 0.02, 0.1};

class NegativeSamplingRun : public testing::Test {
 protected:
  void SetUp() override {
    std::ostringstream rows;
    rows << "click,city,age\n";
    for (uint64_t r = 0; r < kRows; ++r) {
      const uint64_t city = mix64(r) % 3;
      const bool click = unit_float(static_cast<uint32_t>(mix64(r + (1 << 20)))) < static_cast<float>(kRates[city]);
      ++seen_[city];
      clicks_[city] += click;
      rows << click << ",city" << city << "," << r % 7 << "\n";
    }
    write_file(folder_ / "rows.csv", rows.str());
    write_file(folder_ / "cities.csv", "city,age\ncity0,3\ncity1,3\ncity2,3\n");
  }

  static std::string config(const std::string& sampling, const std::string& loss = "BinaryCrossEntropyLoss") {
    const bool two = loss == "CrossEntropyLoss";
    return cat(R"({
      "solver": {"batchsize": 500, "max_iter": 300, "display": 0, "seed": 5, "eval_metrics": ["Calibration", "AUC"],
                 "replace_models": true, "snapshot_prefix": "model/", "checkpoint": {"every": 100}},
      "optimizer": {"type": "Adam", "adam_hparam": {"learning_rate": 0.05, "decay": "linear", "end_lr": 0.0001}},
      "layers": [{"type": "Data", "format": "Csv", "source": "rows.csv", "eval_source": "rows.csv", )",
               sampling, R"(
        "csv": {"labels": ["click"], "dense": [{"columns": ["age"]}], "slots": [{"columns": ["city"]}]},
        "label": {"top": "label"}, "dense": {"top": "dense"}, "sparse": [{"top": "keys"}]},
       {"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "keys", "top": "table",
        "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum"}},
       {"type": "Reshape", "bottom": "table", "top": "flat", "leading_dim": 4},
       {"type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
       {"type": "InnerProduct", "bottom": "all", "top": "score", "fc_param": {"num_output": )",
               two ? 2 : 1, R"(}},
       {"type": ")",
               loss, R"(", "bottom": ["score", "label"], "top": "loss"}]})");
  }
  Outcome run(const std::string& text, const std::string& name, const std::vector<std::string>& more = {}) {
    write_file(folder_ / "c.json", text);
    std::vector<std::string> words = {"--train", "c.json", "--device", "cpu", "--run-dir", name};
    words.insert(words.end(), more.begin(), more.end());
    return run_program("huge_ctr", words, folder_.path());
  }
  void train(const std::string& text, const std::string& name, const std::vector<std::string>& more = {}) {
    const Outcome done = run(text, name, more);
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }
  std::string dense(const std::string& name) const { return read_file(folder_ / name / "final_dense_300.model"); }
  /// The score of each city, from --predict.
  std::vector<double> scores(const std::string& name) {
    const Outcome done = run_program(
        "huge_ctr", {"--predict", "c.json", "--model", name, "--data", "cities.csv", "--out", "-", "--device", "cpu"},
        folder_.path());
    EXPECT_EQ(done.exit_code, 0) << done.err;
    std::istringstream lines(done.out);
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(line, "row\tscore");
    std::vector<double> all;
    while (std::getline(lines, line)) all.push_back(std::stod(line.substr(line.find('\t') + 1)));
    return all;
  }

  static constexpr uint64_t kRows = 60000;
  double seen_[3] = {}, clicks_[3] = {};
  TemporaryFolder folder_;
};

TEST_F(NegativeSamplingRun, PredictionsAndMetricsAreThoseOfAllSamples) {
  for (const char* loss : {"BinaryCrossEntropyLoss", "CrossEntropyLoss", "MultiCrossEntropyLoss"}) {
    SCOPED_TRACE(loss);
    std::string text = config(R"("negative_sampling": 0.1,)", loss);
    if (std::string(loss) == "MultiCrossEntropyLoss")
      text = with_change(text, R"("top": "loss")", R"("top": "loss", "target_weight": [1])");
    train(text, loss);
    const std::vector<double> p = scores(loss);
    ASSERT_EQ(p.size(), 3u);
    // Without the correction, a click probability of 2 % would be predicted as 17 %.
    for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(p[c] / (clicks_[c] / seen_[c]), 1, 0.2) << "city " << c;
    const Outcome eval = run_program(
        "huge_ctr", {"--eval", "c.json", "--model", loss, "--log", "json", "--device", "cpu"}, folder_.path());
    ASSERT_EQ(eval.exit_code, 0) << eval.err;
    const Json found = Json::parse(eval.out, "output");
    EXPECT_EQ(*found.find("samples")->integer(), static_cast<int64_t>(kRows)) << "evaluation leaves nothing out";
    EXPECT_NEAR(found.find("metrics")->find("Calibration")->number(), 1, 0.1);
  }
}

TEST_F(NegativeSamplingRun, RanksAgreeAndResumingGoesOnBitByBit) {
  const std::string text = config(R"("negative_sampling": 0.1, "shuffle": 2000,)");
  train(text, "whole");
  const std::vector<double> one = scores("whole");
  train(text, "start",
        {"--set", "solver.max_iter=150", "--set", "optimizer.adam_hparam.decay_steps=300", "--set",
         "solver.checkpoint.folder=ckpt"});
  train(text, "rest",
        {"--set", "optimizer.adam_hparam.decay_steps=300", "--set", "solver.checkpoint.folder=ckpt", "--resume",
         "latest"});
  EXPECT_TRUE(dense("rest") == dense("whole"));
  train(text, "ranks", {"--set", "solver.gpu=[0,1,2]"});
  const std::vector<double> three = scores("ranks");
  for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(three[c], one[c], 1e-3 * one[c]);
}

TEST_F(NegativeSamplingRun, AShareOfOneChangesNothing) {
  train(config(""), "without");
  train(config(R"("negative_sampling": 1,)"), "with");
  EXPECT_TRUE(dense("with") == dense("without"));
  EXPECT_EQ(read_file(folder_ / "with" / "final0_sparse_300.model"),
            read_file(folder_ / "without" / "final0_sparse_300.model"));
}

TEST_F(NegativeSamplingRun, RefusesWhatCannotBe) {
  const auto expect_says = [&](const std::string& text, int exit_code, const std::string& message) {
    const Outcome done = run(text, "wrong");
    EXPECT_EQ(done.exit_code, exit_code) << done.err;
    EXPECT_NE(done.err.find(message), std::string::npos) << done.err;
  };
  expect_says(config(R"("negative_sampling": 0,)"), 3, "/layers/0/negative_sampling");
  expect_says(config(R"("negative_sampling": 1.5,)"), 3, "/layers/0/negative_sampling");
  expect_says(
      with_change(config(R"("negative_sampling": 0.5,)"), R"("labels": ["click"])", R"("labels": ["click", "age"])"), 3,
      "needs a single label");
  write_file(folder_ / "rows.csv", "click,city,age\n1,a,2\n0.7,b,1\n");
  expect_says(config(R"("negative_sampling": 0.5,)"), 4, "\"negative_sampling\" needs labels that are 0 or 1");
}

}  // namespace
}  // namespace hctr::test
