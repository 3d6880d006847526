// Runs that end when a metric no longer improves. The best model becomes the final model.
#include <gtest/gtest.h>

#include <map>

#include "core/base/expect.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

class EarlyStopping : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "data.json", small_config());
    make_data(folder_.path(), "data.json", 3000, 300, {"--vocabulary", "30"});
  }

  /// The small config with an evaluation every five iterations, `more` in the solver, and a separate prefix. The
  /// learning rate is so large that an early evaluation is the best one.
  static std::string config(const std::string& prefix, const std::string& more, int iterations = 100) {
    std::string text = with_change(small_config(), "\"seed\": 7", "\"seed\": 7" + more);
    text = with_change(text, "\"snapshot_prefix\": \"out/\"", cat("\"snapshot_prefix\": \"", prefix, "/\""));
    text = with_change(text, "\"eval_interval\": 30", "\"eval_interval\": 5");
    text = with_change(text, "\"learning_rate\": 0.01", "\"learning_rate\": 1.0");
    return with_change(text, "\"max_iter\": 60", cat("\"max_iter\": ", iterations));
  }
  Outcome run(const std::string& config, const std::string& name, std::vector<std::string> more = {}) {
    write_file(folder_ / (name + ".json"), config);
    more.insert(more.begin(), {"--train", name + ".json", "--run-dir", name, "--device", "cpu"});
    return run_program("huge_ctr", more, folder_.path());
  }
  Json summary(const std::string& name) const { return Json::read_file(folder_ / name / "summary.json"); }
  /// The dense and sparse files of a final model by name, without the iteration in the names.
  std::map<std::string, std::string> model(const std::string& name) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_ / name))
      if (const std::string file = entry.path().filename(); file.ends_with(".model"))
        files[file.substr(0, file.rfind('_'))] = read_file(entry);
    return files;
  }
  static int64_t integer(const Json& json, const char* field) {
    const Json* value = json.find(field);
    return value && value->integer() ? *value->integer() : -1;
  }

  static constexpr const char* kStop = R"(, "early_stopping": {"metric": "AverageLoss", "patience": 3})";
  TemporaryFolder folder_;
};

TEST_F(EarlyStopping, EndsARunWhoseFinalModelIsTheBest) {
  const Outcome stopped = run(config("early_out", kStop), "early");
  ASSERT_EQ(stopped.exit_code, 0) << stopped.err;
  const Json early = summary("early");
  const int64_t best = integer(early, "best_iteration");
  ASSERT_GT(best, 0) << early.text();
  EXPECT_EQ(integer(early, "iterations"), best + 3 * 5);
  EXPECT_EQ(*early.find("stopped_at")->string(), "early_stopping");
  EXPECT_NE(stopped.err.find(cat("The AverageLoss of iteration ", best, " has not improved in 3 evaluations")),
            std::string::npos)
      << stopped.err;

  // A run of `best` iterations without early stopping has the same model.
  ASSERT_EQ(run(config("plain_out", "", static_cast<int>(best)), "plain").exit_code, 0);
  EXPECT_GE(model("plain").size(), 3u);
  EXPECT_EQ(model("early"), model("plain"));
  const Json* loss = early.find("best_metrics")->find("AverageLoss");
  EXPECT_EQ(loss->text(), summary("plain").find("metrics")->find("AverageLoss")->text());
  const Outcome evaluated = run_program(
      "huge_ctr", {"--eval", "early.json", "--model", "early", "--log", "json", "--device", "cpu"}, folder_.path());
  const Json line = Json::parse(evaluated.out, "the evaluation");
  EXPECT_EQ(integer(line, "iteration"), best);
  EXPECT_EQ(line.find("metrics")->find("AverageLoss")->text(), loss->text());

  // When a later evaluation is better, the run removes the model of the earlier evaluation.
  for (const auto& entry : fs::directory_iterator(folder_ / "early_out"))
    EXPECT_NE(entry.path().filename().string().find(cat("_", best, ".")), std::string::npos) << entry.path();
}

TEST_F(EarlyStopping, GoesOnWhereACheckpointWas) {
  const std::string more = cat(kStop, R"(, "checkpoint": {"every": 5, "folder": ")");
  ASSERT_EQ(run(config("whole_out", more + "whole_ckpt\"}"), "whole").exit_code, 0);
  const int64_t best = integer(summary("whole"), "best_iteration");
  // The first part of the run ends after the best evaluation, before early stopping applies.
  const auto part = [&](int iterations) { return config("part_out", more + "part_ckpt\"}", iterations); };
  ASSERT_EQ(run(part(static_cast<int>(best) + 7), "part").exit_code, 0);
  const Outcome resumed = run(part(100), "part", {"--resume", "latest"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  for (const char* field : {"iterations", "best_iteration"})
    EXPECT_EQ(integer(summary("part"), field), integer(summary("whole"), field)) << field;
  EXPECT_EQ(model("part"), model("whole"));
}

TEST_F(EarlyStopping, KeepsSnapshotsAndSavesNothingWhereNothingIsToBeSaved) {
  const std::string every = with_change(config("kept", kStop), "\"snapshot\": 1000000", "\"snapshot\": 5");
  ASSERT_EQ(run(every, "kept_run").exit_code, 0);
  for (int64_t at = 5; at <= integer(summary("kept_run"), "iterations") - 5; at += 5)
    EXPECT_TRUE(fs::exists(folder_ / "kept" / cat("_dense_", at, ".model"))) << at;
  ASSERT_EQ(run(config("none", cat(kStop, ", \"final_snapshot\": false")), "none_run").exit_code, 0);
  EXPECT_TRUE(fs::is_empty(folder_ / "none"));
  EXPECT_EQ(integer(summary("none_run"), "iterations"), integer(summary("kept_run"), "iterations"));
}

TEST_F(EarlyStopping, AMetricThatIsUndefinedEndsNothingAndIsWarnedOfOnceWithItsReason) {
  const std::string more = R"(, "early_stopping": {"metric": "AUC", "patience": 2}, "max_eval_batches": 1,
    "batchsize_eval": 1, "checkpoint": {"every": 20, "folder": "ckpt"})";
  const auto count = [](const std::string& text, const std::string& words) {
    int found = 0;
    for (size_t at = 0; (at = text.find(words, at)) != text.npos; ++at) ++found;
    return found;
  };
  const std::string warning = "warning: AUC is undefined: the only evaluation sample has label ",
                    nothing =
                        "warning: AUC was undefined in every evaluation: early stopping could not compare "
                        "evaluations";
  const Outcome first = run(config("out", more, 20), "undefined");
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(count(first.err, warning), 1) << first.err;
  EXPECT_EQ(count(first.err, nothing), 1) << first.err;
  EXPECT_NE(first.out.find("  AUC: not defined: the only evaluation sample has label "), std::string::npos);
  const Outcome resumed = run(config("out", more, 40), "undefined", {"--resume", "latest"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(count(resumed.err, warning), 0) << resumed.err;
  EXPECT_EQ(count(resumed.err, nothing), 1) << resumed.err;
  EXPECT_EQ(integer(summary("undefined"), "iterations"), 40);
  EXPECT_EQ(summary("undefined").find("stopped_at"), nullptr);
}

TEST_F(EarlyStopping, NeedsAMetricAndEvaluations) {
  const auto expect_refused = [&](const std::string& text, const std::string& words) {
    const Outcome refused = run(text, "refused");
    EXPECT_EQ(refused.exit_code, 3) << refused.err;
    EXPECT_NE(refused.err.find(words), std::string::npos) << refused.err;
  };
  expect_refused(config("out", R"(, "early_stopping": {"metric": "NDCG"})"), "/solver/early_stopping/metric");
  expect_refused(with_change(config("out", kStop), "\"eval_interval\": 5", "\"eval_interval\": 0"),
                 "\"eval_interval\" is 0");
  expect_refused(config("out", cat(kStop, R"(, "checkpoint": {"keep_best": "AUC"})")), "name one metric");
}

}  // namespace
}  // namespace hctr::test
