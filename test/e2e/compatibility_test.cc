// The values of "compatibility" that change which batches a run reads, or how the run updates its tables.
#include <gtest/gtest.h>

#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

class CompatibleRuns : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "data.json", small_config());
    make_data(folder_.path(), "data.json", 1000, 300);
  }

  /// Returns the summary of a run of `config` with "compatibility": [`words`].
  Json run(std::string config, const std::string& words, const std::string& name = "run") {
    config = with_change(config, "\"seed\": 7", "\"seed\": 7, \"compatibility\": [" + words + "]");
    write_file(folder_ / "config.json", config);
    const Outcome done =
        run_program("huge_ctr", {"--train", "config.json", "--run-dir", name, "--device", "cpu"}, folder_.path());
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return Json::parse(read_file(folder_ / name / "summary.json"), "summary.json");
  }
  std::string table(const std::string& name) { return read_file(folder_ / name / "final_1_sparse_60.model"); }
  /// Returns the AUC of each evaluation.
  std::vector<double> areas() {
    std::vector<double> values;
    std::istringstream lines(read_file(folder_ / "run" / "metrics.jsonl"));
    for (std::string text; std::getline(lines, text);) {
      const Json line = Json::parse(text, "metrics.jsonl");
      if (const Json* value = line.find("AUC")) values.push_back(value->number());
    }
    return values;
  }

  TemporaryFolder folder_;
};

TEST_F(CompatibleRuns, TheScheduleSetsTheRateOfEveryEmbedding) {
  const auto with_rate = [](const std::string& rate) {
    return with_change(small_config(), "\"top\": \"deep_emb\",",
                       R"("top": "deep_emb", "optimizer": {"type": "Adam", "update_type": "Global",
                       "adam_hparam": {"learning_rate": )" +
                           rate + R"(, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}},)");
  };
  run(with_rate("0.05"), "\"schedule_sets_embedding_rates\"", "overridden");
  run(with_rate("0.05"), "", "own");
  run(small_config(), "", "top");
  EXPECT_TRUE(table("overridden") == table("top"));
  EXPECT_FALSE(table("own") == table("top"));
}

TEST_F(CompatibleRuns, EvaluationsGoOnWhereTheLastOneEnded) {
  std::string config = with_change(small_config(), "\"eval_interval\": 30",
                                   "\"eval_interval\": 1, \"batchsize_eval\": 100, \"max_eval_batches\": 1");
  config = with_change(config, "\"max_iter\": 60", "\"max_iter\": 14");
  config = with_change(config, "\"learning_rate\": 0.01",
                       "\"learning_rate\": 0");  // after all keys have occurred, the model stays constant
  const auto last_six = [&] {
    std::vector<double> values = areas();
    EXPECT_EQ(values.size(), 14u);
    return std::vector<double>(values.end() - 6, values.end());
  };
  run(config, "");
  std::vector<double> values = last_six();
  EXPECT_EQ(values, std::vector<double>(6, values[0]));
  run(config, "\"evaluation_continues\"");
  values = last_six();
  EXPECT_NE(values[0], values[1]);
  EXPECT_NE(values[1], values[2]);
  EXPECT_EQ(std::vector<double>(values.begin(), values.begin() + 3),
            std::vector<double>(values.begin() + 3, values.end()))
      << "three make the set";
}

TEST_F(CompatibleRuns, SamplesThatFillNoBatchAreLeftOut) {
  const std::string config = with_change(small_config(), "\"max_iter\": 60", "\"num_epochs\": 2");
  EXPECT_EQ(*run(config, "").find("samples")->integer(), 2000);
  const Json summary = run(config, "\"drop_partial_batches\"");
  EXPECT_EQ(*summary.find("samples")->integer(), 2 * 7 * 128);
  EXPECT_EQ(*summary.find("iterations")->integer(), 2 * 7);
}

}  // namespace
}  // namespace hctr::test
