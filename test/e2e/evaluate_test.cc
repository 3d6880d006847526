// huge_ctr --eval: the metrics of a saved model equal those measured in training.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "core/base/expect.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

/// The small config with checkpoints and a normalized layer, whose statistics are stored in a separate file.
std::string evaluated_config() {
  const std::string normalized =
      with_change(small_config(), R"("type": "ReLU", "bottom": "fc1")",
                  R"("type": "BatchNorm", "bottom": "fc1", "top": "bn1", "bn_param": {"factor": 0.9, "eps": 1e-5}},
    {"name": "relu", "type": "ReLU", "bottom": "bn1")");
  return with_change(normalized, "\"snapshot\": 1000000", "\"snapshot\": 20, \"checkpoint\": {\"every\": 20}");
}

class EvaluateSavedModel : public testing::Test {
 protected:
  /// All tests share one run.
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    write_file(*folder_ / "config.json", evaluated_config());
    make_data(folder_->path(), "config.json", 6000, 1000, {"--vocabulary", "30", "--interactions", "0"});
    const Outcome done =
        run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run", "--device", "cpu"}, folder_->path());
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }
  static void TearDownTestSuite() { delete folder_; }

  static Outcome evaluate(const std::string& model, const std::vector<std::string>& more = {},
                          const std::string& config = "config.json") {
    std::vector<std::string> words = {"--eval", config, "--model", model, "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program("huge_ctr", words, folder_->path());
  }
  static Json evaluate_to_json(const std::string& model, const std::vector<std::string>& more = {},
                               const std::string& config = "config.json") {
    std::vector<std::string> words = more;
    words.insert(words.end(), {"--log", "json"});
    const Outcome done = evaluate(model, words, config);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.exit_code == 0 ? Json::parse(done.out, "output") : Json(Json::Object{{"metrics", Json::Object{}}});
  }
  /// Writes the config with `from` replaced, and returns its file name.
  static std::string changed(const std::string& name, const std::string& from, const std::string& to) {
    write_file(*folder_ / name, with_change(evaluated_config(), from, to));
    return name;
  }
  static void expect_fails(const Outcome& outcome, int exit_code, const std::vector<std::string>& parts) {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.err.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << outcome.err;
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* EvaluateSavedModel::folder_ = nullptr;

TEST_F(EvaluateSavedModel, GivesTheMetricsOfTrainingWhateverNamesTheModel) {
  const Json summary = Json::parse(read_file(*folder_ / "run/summary.json"), "summary.json");
  const std::string metrics = summary.find("metrics")->text();
  for (const char* model : {"run", "run/", "out/", "out", "out/@60", "out/_dense_60.model", "run/final_", "ckpt",
                            "ckpt/iteration_000060"}) {
    SCOPED_TRACE(model);
    const Json found = evaluate_to_json(model);
    EXPECT_EQ(found.find("metrics")->text(), metrics);  // bit-identical
    EXPECT_EQ(found.find("iteration")->text(), "60");
    EXPECT_EQ(found.find("samples")->text(), "1000");
    EXPECT_EQ(found.find("best_possible")->text(), summary.find("best_possible")->text());
  }
}

TEST_F(EvaluateSavedModel, TakesTheIterationThatIsAskedFor) {
  const Json of_40 = evaluate_to_json("out/@40"), of_checkpoint = evaluate_to_json("ckpt/iteration_000040");
  EXPECT_EQ(of_40.find("iteration")->text(), "40");
  EXPECT_EQ(of_40.find("metrics")->text(), of_checkpoint.find("metrics")->text());
  EXPECT_NE(of_40.find("metrics")->text(), evaluate_to_json("out/").find("metrics")->text());
}

TEST_F(EvaluateSavedModel, PrintsMetricsAsTrainingDoes) {
  const Json summary = Json::parse(read_file(*folder_ / "run/summary.json"), "summary.json");
  std::string expected;
  for (const auto& [name, value] : *summary.find("metrics")->object()) {
    char line[128];
    std::snprintf(line, sizeof line, "%s: %.6f (best possible on this data: %.6f)\n", name.c_str(), value.number(),
                  summary.find("best_possible")->find(name)->number());
    expected += line;
  }
  EXPECT_EQ(evaluate("run").out, expected);
}

TEST_F(EvaluateSavedModel, GivesTheSameOnSeveralRanks) {
  const Json one = evaluate_to_json("run");
  for (const char* model : {"run", "ckpt"}) {
    const Json three = evaluate_to_json(model, {}, changed("three.json", "\"gpu\": [0]", "\"gpu\": [0, 1, 2]"));
    EXPECT_EQ(three.find("samples")->text(), "1000");
    for (const auto& [name, value] : *one.find("metrics")->object())
      EXPECT_NEAR(three.find("metrics")->find(name)->number(), value.number(), 1e-6) << model << ": " << name;
  }
}

TEST_F(EvaluateSavedModel, TakesOtherDataWholeAndTheConfigsAsTheConfigSays) {
  const std::string two_batches =
      changed("two.json", "\"eval_interval\"", "\"max_eval_batches\": 2, \"eval_interval\"");
  EXPECT_EQ(evaluate_to_json("run", {}, two_batches).find("samples")->text(), "256");
  EXPECT_EQ(evaluate_to_json("run", {"--data", "train.txt"}, two_batches).find("samples")->text(), "6000");
  const std::string without = changed("without.json", ", \"eval_source\": \"eval.txt\"", "");
  EXPECT_EQ(evaluate_to_json("run", {"--data", "eval.txt"}, without).find("metrics")->text(),
            evaluate_to_json("run").find("metrics")->text());
  expect_fails(evaluate("run", {}, without), 2, {"'without.json' has no eval_source", "--data"});
  // Evaluation needs no training data.
  const std::string elsewhere = changed("elsewhere.json", "\"source\": \"train.txt\"", "\"source\": \"nowhere.txt\"");
  EXPECT_EQ(evaluate_to_json("run", {}, elsewhere).find("samples")->text(), "1000");
  expect_fails(evaluate("run", {"--data", "nowhere.txt"}), 5, {"nowhere.txt"});
}

TEST_F(EvaluateSavedModel, WritesNoFile) {
  const auto files = [&] {
    // the modification time of each file, except the files with captured output
    std::map<fs::path, fs::file_time_type> times;
    for (const auto& entry : fs::recursive_directory_iterator(folder_->path()))
      if (!entry.path().filename().string().starts_with('.')) times[entry.path()] = entry.last_write_time();
    return times;
  };
  const auto before = files();
  for (const char* model : {"run", "out/", "ckpt"}) EXPECT_EQ(evaluate(model).exit_code, 0);
  EXPECT_EQ(files(), before);
}

TEST_F(EvaluateSavedModel, SaysWhereItLookedForAModelAndWhatIsThere) {
  expect_fails(evaluate("nothing"), 5,
               {"there is no model 'nothing'", "'nothing/summary.json'", "'nothing/manifest.json'",
                "'nothing_dense_<n>.model'", "there: --model out/, iterations 20, 40, 60"});
  expect_fails(
      evaluate("out/@30"), 5,
      {"no model of iteration 30 at prefix 'out/'", "'out/_dense_30.model'", "there are iterations 20, 40, 60"});
  fs::create_directories(*folder_ / "unfinished");
  write_file(*folder_ / "unfinished/metrics.jsonl", "");
  fs::copy_file(*folder_ / "run/config.json", *folder_ / "unfinished/config.json",
                fs::copy_options::overwrite_existing);
  expect_fails(evaluate("unfinished"), 5, {"has no summary.json", "its snapshots are at --model out/"});
  fs::create_directories(*folder_ / "measured");
  write_file(*folder_ / "measured/summary.json", R"({"iterations": 60, "model_files": []})");
  expect_fails(evaluate("measured"), 5, {"saved no final model", "\"final_snapshot\""});
}

/// Values substituted for variables of a config are not expanded again.
TEST_F(EvaluateSavedModel, TheConfigOfARunMayHoldWhatLooksLikeAVariable) {
  const std::string config = changed("dollar.json", "\"out/\"", "\"out_$${HCTR_NO_SUCH}/\"");
  const Outcome trained = run_program(
      "huge_ctr", {"--train", config, "--run-dir", "dollar", "--max-iter", "20", "--device", "cpu"}, folder_->path());
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(fs::exists(*folder_ / "out_${HCTR_NO_SUCH}"));
  EXPECT_EQ(evaluate("dollar", {}, "dollar/config.json").exit_code, 0);
}

TEST_F(EvaluateSavedModel, NamesTheLayerOrTableOfAnotherConfig) {
  const std::string wide = changed("wide.json", "\"num_output\": 16", "\"num_output\": 24");
  expect_fails(evaluate("out/", {}, wide), 4, {"belongs to another model", "'fc1/weights' [19,16]", "[19,24]"});
  expect_fails(evaluate("run", {}, wide), 4, {"whose config differs: layer 'fc1' was", "\"num_output\":24"});
  expect_fails(evaluate("ckpt", {}, wide), 4, {"fc1/weights", "whose config differs: layer 'fc1' was"});
  const std::string longer = with_change(evaluated_config(), "\"embedding_vec_size\": 5", "\"embedding_vec_size\": 7");
  write_file(*folder_ / "longer.json", with_change(longer, "\"leading_dim\": 15", "\"leading_dim\": 21"));
  expect_fails(evaluate("run", {}, "longer.json"), 4, {"layer 'deep_emb' was"});
  const std::string more =
      changed("more.json", R"({"name": "wide", "type": "Reshape")",
              R"({"type": "DistributedSlotSparseEmbeddingHash", "bottom": "wide_data", "top": "third",
     "sparse_embedding_hparam": {"embedding_vec_size": 1, "combiner": 0}},
    {"name": "wide", "type": "Reshape")");
  for (const char* model : {"out/", "run"})
    expect_fails(evaluate(model, {}, more), 4,
                 {"has 2 tables, but the config has 3 ('wide_emb', 'deep_emb', 'third')"});
}

TEST_F(EvaluateSavedModel, SaysWhatIsMissingOnTheCommandLine) {
  const auto run = [&](const std::vector<std::string>& words) {
    return run_program("huge_ctr", words, folder_->path());
  };
  expect_fails(run({"--eval", "config.json"}), 2, {"--eval needs --model"});
  expect_fails(run({"--train", "config.json", "--model", "run"}), 2, {"--model requires --eval"});
  expect_fails(run({"--eval", "config.json", "--model", "run", "--run-dir", "x"}), 2, {"--run-dir requires --train"});
  expect_fails(run({"--eval", "config.json", "--train", "config.json"}), 2, {"--train and --eval are two commands"});
}

}  // namespace
}  // namespace hctr::test
