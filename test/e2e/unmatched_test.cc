// Keys that did not occur in training are reported whenever a model scores data.
#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

/// Rows of pages and users. User ids start at `first_user` and end with the text `behind_user`.
std::string rows(int count, int first_user, const std::string& behind_user) {
  std::string text = "user,page,click\n";
  for (int i = 0; i < count; ++i)
    text += cat(first_user + i % 40, behind_user, ",p", i % 7, ",", (i * 7 + i / 5) % 3 == 0, "\n");
  return text;
}

constexpr const char* kConfig = R"({
  "solver": {"max_iter": 30, "batchsize": 64, "batchsize_eval": 32, "eval_interval": 15, "snapshot_prefix": "m/"},
  "optimizer": {"type": "AdaGrad", "adagrad_hparam": {"learning_rate": 0.05}},
  "layers": [
    {"type": "Data", "format": "Csv", "source": "train.csv", "eval_source": "half.csv",
     "csv": {"labels": ["click"], "slots": [{"columns": ["user", "page"]}]},
     "label": {"top": "label"}, "dense": {"top": "dense", "dense_dim": 0}, "sparse": [{"top": "keys"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "e",
     "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum"}},
    {"type": "Reshape", "bottom": "e", "top": "flat", "leading_dim": 8},
    {"type": "InnerProduct", "bottom": "flat", "top": "logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}]})";

TEST(UnmatchedKeys, AreReportedInTrainingEvaluationAndPrediction) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", kConfig);
  write_file(folder / "train.csv", rows(400, 0, ""));
  write_file(folder / "half.csv", rows(200, 20, ""));
  write_file(folder / "float.csv", rows(200, 0, ".0"));
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--device", "cpu"});
    return run_program("huge_ctr", words, folder.path());
  };
  const Outcome trained = run({"--train", "config.json", "--run-dir", "run"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("Evaluation, keys without a row in the model: user 50 %"), std::string::npos)
      << trained.err;
  EXPECT_EQ(trained.err.find("warning"), std::string::npos) << trained.err;
  const std::string metrics = read_file(folder / "run" / "metrics.jsonl");
  EXPECT_NE(metrics.find(R"("unmatched_keys":{"user":0.5,"page":0)"), std::string::npos) << metrics;

  const Outcome half = run({"--eval", "config.json", "--model", "run", "--log", "json"});
  ASSERT_EQ(half.exit_code, 0) << half.err;
  const Json json = Json::parse(half.out, "output");
  EXPECT_EQ(json.find("unmatched_keys")->find("user")->number(), 0.5);
  EXPECT_EQ(json.find("unmatched_keys")->find("page")->number(), 0);

  const Outcome failed = run({"--eval", "config.json", "--model", "run", "--data", "float.csv"});
  EXPECT_NE(failed.exit_code, 0);
  EXPECT_NE(failed.err.find("no key of a slot has a row in the model"), std::string::npos) << failed.err;
  EXPECT_NE(failed.err.find("user (200 keys)"), std::string::npos) << failed.err;
  const std::vector<std::string> predict = {"--predict", "config.json", "--model", "run",
                                            "--data",    "float.csv",   "--out",   "scores.csv"};
  EXPECT_NE(run(predict).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "scores.csv")) << "scores that mean nothing are not there";
  std::vector<std::string> allowed = predict;
  allowed.insert(allowed.end(), {"--unmatched", "allow"});
  const Outcome done = run(allowed);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("warning: most keys of a slot of 'float.csv' did not occur in training"), std::string::npos)
      << done.err;
  EXPECT_TRUE(std::filesystem::exists(folder / "scores.csv"));
}

/// A config with users and cities as features. In every format, the config reads equal features.
std::string config_of_cities(const std::string& format, const std::string& source, const std::string& gpus) {
  const std::string keys = format == "Parquet" ? R"("keys": "hash", "default": "", )" : "",
                    section = format == "Parquet" ? "parquet" : "csv";
  return cat(R"({"solver": {"max_iter": 8, "batchsize": 32, "batchsize_eval": 16, "eval_interval": 8, "gpu": )", gpus,
             R"(, "snapshot_prefix": "m/", "eval_metrics": ["AUC", "GroupedAUC"], "group_by": {"input": "keys"}},
    "optimizer": {"type": "AdaGrad", "adagrad_hparam": {"learning_rate": 0.05}},
    "layers": [{"type": "Data", "format": ")",
             format, R"(", "source": ")", source, R"(", "eval_source": ")", source, R"(",
      ")",
             section, R"(": {"labels": [{"column": "click", "positive": "yes"}],
        "slots": [{"columns": ["user"], )",
             keys, R"("buckets": 0},
                  {"columns": ["city"], "keys": "vocabulary", "vocabulary": "cities.txt"}]},
      "label": {"top": "label"}, "dense": {"top": "dense", "dense_dim": 0}, "sparse": [{"top": "keys"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "e",
     "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum"}},
    {"type": "Reshape", "bottom": "e", "top": "flat", "leading_dim": 8},
    {"type": "InnerProduct", "bottom": "flat", "top": "logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}]})");
}

TEST(UnmatchedKeys, SharesOfWhatMatchesNothingAreEqualForRanksThreadsAndFormats) {
  const TemporaryFolder folder;
  std::string text = "user,city,click\n";
  const char* const cities[] = {"Oslo", "Paris", "oslo", "Rome"};
  for (int i = 0; i < 160; ++i)
    text += cat("u", i % 40, ",", cities[i % 4], ",", (i * 7 + i / 5) % 3 == 0 ? "yes" : "no", "\n");
  write_file(folder / "train.csv", text);
  for (int i = 0; i < 40; ++i) text += cat(i % 5 == 0 ? "" : "new", ",Bergen,", i % 2 ? "yes" : "no", "\n");
  write_file(folder / "eval.csv", text);
  write_file(folder / "cities.txt", "\xEF\xBB\xBFOslo\nParis\nRome\n");
  write_file(folder / "one.json", config_of_cities("Csv", "train.csv", "[0]"));
  write_file(folder / "two.json", config_of_cities("Csv", "train.csv", "[0, 1]"));
  write_file(folder / "parquet.json", config_of_cities("Parquet", "eval.parquet", "[0]"));
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--device", "cpu"});
    return run_program("huge_ctr", words, folder.path());
  };
  const Outcome trained = run({"--train", "one.json", "--run-dir", "r"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("Evaluation, values that the vocabulary lacks: city 25 %"), std::string::npos)
      << trained.err;
  EXPECT_NE(read_file(folder / "r" / "metrics.jsonl").find(R"("unlisted_values":{"city":0.25})"), std::string::npos);
  ASSERT_EQ(run({"--predict", "one.json", "--model", "r", "--data", "eval.csv", "--out", "eval.parquet", "--keep",
                 "user,city,click"})
                .exit_code,
            0);
  const auto shares = [&](const std::string& config, const std::string& data, const std::string& threads) {
    const Outcome out = run({"--eval", config, "--model", "r", "--data", data, "--log", "json", "--threads", threads});
    EXPECT_EQ(out.exit_code, 0) << out.err;
    std::string all;
    const Json json = Json::parse(out.out, "output");
    for (const char* name : {"unmatched_keys", "unlisted_values", "without_group"})
      if (const Json* value = json.find(name)) all += cat(name, " ", value->text(), " ");
    return all;
  };
  const std::string wanted =
      R"(unmatched_keys {"user":0.16666666666666666,"city":0.0} unlisted_values {"city":0.4} without_group {"user":0.04} )";
  EXPECT_EQ(shares("one.json", "eval.csv", "1"), wanted);
  EXPECT_EQ(shares("one.json", "eval.csv", "3"), wanted);
  EXPECT_EQ(shares("two.json", "eval.csv", "2"), wanted);
  EXPECT_EQ(shares("parquet.json", "eval.parquet", "2"), wanted);
}

}  // namespace
}  // namespace hctr::test
