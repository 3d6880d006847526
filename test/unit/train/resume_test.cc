#include "train/resume.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/expect.h"
#include "infer/load_config.h"
#include "support/message_of.h"
#include "support/run_program.h"
#include "support/test_log.h"

namespace hctr::test {
namespace {

class ResumedConfig : public testing::Test {
 protected:
  Config load(const std::string& text) {
    write_file(folder_ / "config.json", text);
    return load_config(folder_ / "config.json", false, Log::silent());
  }
  /// Resumes a run of small_config() with another config. Returns the error message, or the log if there is no error.
  std::string outcome(const std::string& changed) {
    const Config before = load(small_config());
    const ResumePoint point{
        .folder = "ckpt/iteration_000010",
        .manifest = {.about = about_run("a", before, "cpu", Json(), Json()), .progress = {}, .files = {{}}},
        .progress = {}};
    std::string lines;
    const Log log([&](Level level, std::string_view line) {
      lines += cat(level == Level::warning ? "warning: " : "", line, "\n");
    });
    try {
      expect_same_run(point, load(changed), log);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Kind::config);
      return cat("error: ", error.what());
    }
    return lines;
  }
  std::string change(const std::string& from, const std::string& to) {
    return outcome(with_change(small_config(), from, to));
  }
  TemporaryFolder folder_;
};

TEST_F(ResumedConfig, MayChangeWhatDecidesNoNumber) {
  EXPECT_EQ(outcome(small_config()), "");
  EXPECT_EQ(change("\"max_iter\": 60", "\"max_iter\": 90"),
            "The config has changed: /solver/max_iter was 60 and is 90.\n");
  EXPECT_EQ(change("\"display\": 20", "\"display\": 5"), "The config has changed: /solver/display was 20 and is 5.\n");
  EXPECT_EQ(change("\"gpu\": [0]", "\"gpu\": [0, 1]"), "The config has changed: /solver/gpu was [0] and is [0,1].\n");
  EXPECT_NE(change("\"snapshot\": 1000000", R"("checkpoint": {"every": 5})").find("/solver/checkpoint was not set"),
            std::string::npos);
  EXPECT_NE(change("\"eval_interval\": 30", "\"eval_interval\": 7").find("/solver/eval_interval"), std::string::npos);
  EXPECT_NE(change("\"seed\": 7", "\"seed\": 7, \"dense_model_file\": \"x\"").find("without effect"),
            std::string::npos);
  EXPECT_NE(change("\"train.txt\"", "\"moved.txt\"").find("/layers/0/source was \"train.txt\" and is \"moved.txt\""),
            std::string::npos);
}

TEST_F(ResumedConfig, WarnsOfAnotherLearningRate) {
  EXPECT_EQ(change("\"learning_rate\": 0.01", "\"learning_rate\": 0.02"),
            "warning: the learning rate has changed: /optimizer/adam_hparam/learning_rate was 0.01 and is 0.02; "
            "the run continues with the new rate\n");
}

TEST_F(ResumedConfig, IsRefusedWhereItDecidesTheModel) {
  for (const auto& [from, to, field] : std::vector<std::array<std::string, 3>>{
           {"\"seed\": 7", "\"seed\": 8", "/solver/seed was 7 and is 8"},
           {"\"batchsize\": 128", "\"batchsize\": 64", "/solver/batchsize was 128 and is 64"},
           {"\"max_iter\": 60", "\"num_epochs\": 2", "/solver/max_iter was 60 and is not set"},
           {"\"num_output\": 16", "\"num_output\": 17", "/layers/6/fc_param/num_output was 16 and is 17"},
           {"\"beta1\": 0.9", "\"beta1\": 0.8", "/optimizer/adam_hparam/beta1 was 0.9 and is 0.8"},
           {"\"seed\": 7", "\"seed\": 7, \"mixed_precision\": true", "/solver/mixed_precision was \"fp32\""},
           {"\"update_type\": \"Global\"", "\"update_type\": \"Local\"", "/optimizer/update_type was"},
           {"\"check\": \"Sum\"", "\"check\": \"Sum\", \"shuffle\": 100",
            "/layers/0/shuffle was not set and is 100"}}) {
    const std::string message = change(from, to);
    EXPECT_TRUE(
        message.starts_with("error: the config differs from the config of the checkpoint "
                            "'ckpt/iteration_000010'"))
        << message;
    EXPECT_NE(message.find("\n  " + field), std::string::npos) << message;
  }
}

/// A RunProgress with a distinct value in each field.
[[gnu::noinline]] RunProgress progress_of_every_field() {
  return {.finished = true,
          .iterations = 12,
          .samples = 1LL << 40,
          .epochs = 2,
          .evaluated_at = 10,
          .loss = 0.1,
          .skipped_steps = 3,
          .skipped_records = 4,
          .key_bytes = 8,
          .eval_seconds = 0.25,
          .metrics = {{"AUC", 0.7}, {"NDCG", std::nan("")}},
          .undefined = {{"NDCG", "all 7 evaluation samples have label 0"}},
          .counted_losses = std::vector<std::string>{"loss"},
          .stopped_at = "AUC:0.7",
          .best = 0.7,
          .best_iteration = 10,
          .best_metrics = {{"AUC", 0.7}},
          .evaluations_since_best = 2,
          .undefined_evaluations = 3,
          .undefined_warned = {"NDCG"},
          .best_files = {"c"},
          .report = {.seconds = 1.5, .samples = 100, .iteration = 10},
          .reader = {.pass = 1, .file = 2, .record = 3, .samples = 77},
          .eval_reader = {.offset = 9},
          .snapshot_iteration = 10,
          .snapshot_files = {"a", "b"}};
}

TEST(RunProgressTest, ComesBackFromJson) {
  RunProgress progress = progress_of_every_field();
  progress.report.tables["t"]["rows"] = 5;
  const std::string text = to_json(progress).text();
  const RunProgress back = run_progress(Json::parse(text, "test"));
  EXPECT_EQ(to_json(back).text(), text);
  EXPECT_EQ(back.reader, progress.reader);
  EXPECT_TRUE(std::isnan(back.metrics.at("NDCG")));
  EXPECT_EQ(back.report.tables.at("t").at("rows"), 5);
  EXPECT_NE(
      message_of(Kind::data, [&] { run_progress(Json::parse(with_change(text, "\"samples\":", "\"sam\":"), "test")); })
          .find("\"samples\""),
      std::string::npos);
}

TEST(RunProgressTest, ACheckpointOfAnEarlierProgramDoesNotSayWhichLossesHaveCounted) {
  EXPECT_TRUE(run_progress(to_json(RunProgress())).counted_losses);
  const std::string earlier = with_change(to_json(RunProgress()).text(), "\"counted_losses\":[],", "");
  EXPECT_FALSE(run_progress(Json::parse(earlier, "test")).counted_losses);
}

}  // namespace
}  // namespace hctr::test
