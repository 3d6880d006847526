// Real-world text from training to predictions: blanks, missing values, text labels, unscaled numbers, and a config
// without optional fields.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "core/base/expect.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

std::string messy_config(const std::string& dense, const std::string& more = "") {
  return cat(R"({
  "solver": {"display": 0, "max_iter": 60, "batchsize": 64, "gpu": [0], "seed": 3, "replace_models": true, "snapshot_prefix": "out/",
             "eval_interval": 30, "eval_metrics": ["AUC", "AverageLoss"])",
             more, R"(},
  "optimizer": {"type": "Adam", "adam_hparam": {"learning_rate": 0.02, "warmup_steps": "10%", "decay_start": 0.5,
                                                "decay_steps": 0.5, "decay_power": 1}},
  "layers": [
    {"type": "Data", "format": "Csv", "source": "train.csv", "eval_source": "eval.csv",
     "csv": {"trim": true, "missing": ["?"], "labels": [{"column": "income", "positive": ">50K"}], )",
             dense, R"(, "slots": [{"columns": ["job", "country"], "default": "none"}]},
     "label": {"top": "label"}, "dense": {"top": "dense"}, "sparse": [{"top": "keys"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "emb",
     "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum"}},
    {"type": "Reshape", "bottom": "emb", "top": "flat"},
    {"type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
    {"type": "InnerProduct", "bottom": "all", "top": "fc", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["fc", "label"], "top": "loss"}
  ]
})");
}

const char* const kLearned =
    R"("dense": [{"columns": ["age"], "transform": "standardize"},
                {"columns": ["gain"], "transform": ["log", "standardize"]}])";
const char* const kAsTheyStand = R"("dense": [{"columns": ["age", "gain"]}])";

/// One person of the data. The age may be missing, and the gain spans several orders of magnitude.
struct Person {
  Person(int row, int seed) {
    const int mixed = (row * 7919 + seed * 104729) % 10007;
    job = mixed % 5;
    if (mixed % 7 != 0) age = 20 + mixed % 50;
    gain = mixed % 3 == 0 ? 0 : mixed * 11;
    rich = (age.value_or(40) > 45) != (job == 2);
  }
  int job = 0, gain = 0;
  std::optional<int> age;
  bool rich = false;
};

/// Mean and standard deviation of the values that are not missing.
struct HandMade {
  explicit HandMade(const std::vector<double>& values) {
    const auto count = static_cast<double>(values.size());
    for (const double value : values) mean += value / count;
    double squares = 0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    deviation = std::sqrt(squares / count);
  }
  double standardised(double value) const { return (value - mean) / deviation; }
  double mean = 0, deviation = 0;
};

constexpr int kRows = 1500;

std::string messy_rows(int first, int rows, int seed, const char* ending = "") {
  std::ostringstream text;
  text << "age, job , gain, country,income\n";
  for (int r = first; r < first + rows; ++r) {
    const Person person(r, seed);
    text << (person.age ? cat(*person.age) : "?") << ", " << (person.job == 4 ? "?" : cat("\"job, ", person.job, "\""))
         << " , " << person.gain << ", Norway," << (person.rich ? " >50K" : " <=50K") << ending << "\n";
  }
  return text.str();
}

/// The same rows, with numbers that the test itself standardizes by the mean and deviation of the training rows.
std::string standardised_rows(int seed) {
  std::vector<double> all_ages, all_gains;
  for (int r = 0; r < kRows; ++r) {
    const Person person(r, 1);
    if (person.age) all_ages.push_back(*person.age);
    all_gains.push_back(std::log1p(person.gain));
  }
  const HandMade ages(all_ages), gains(all_gains);
  std::ostringstream text;
  text.precision(17);
  text << "income,age,gain,job,country\n";
  for (int r = 0; r < (seed == 1 ? kRows : 300); ++r) {
    const Person person(r, seed);
    text << (person.rich ? ">50K" : "<=50K") << "," << (person.age ? ages.standardised(*person.age) : 0) << ","
         << gains.standardised(std::log1p(person.gain)) << ","
         << (person.job == 4 ? "?" : cat("\"job, ", person.job, "\"")) << ",Norway\n";
  }
  return text.str();
}

class MessyCsv : public testing::Test {
 protected:
  /// All tests share one run.
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    write_file(*folder_ / "config.json", messy_config(kLearned));
    write_file(*folder_ / "train.csv", messy_rows(0, kRows, 1));
    write_file(*folder_ / "eval.csv", messy_rows(0, 300, 2));
    trained_ = run({"--train", "config.json", "--run-dir", "run"});
  }
  static void TearDownTestSuite() { delete folder_; }
  void SetUp() override { ASSERT_EQ(trained_.exit_code, 0) << trained_.err; }

  static Outcome run(std::vector<std::string> words) {
    words.insert(words.end(), {"--device", "cpu"});
    return run_program("huge_ctr", words, folder_->path());
  }
  static Outcome train(const std::string& config, const std::string& run_dir,
                       const std::vector<std::string>& more = {}) {
    write_file(*folder_ / "other.json", config);
    std::vector<std::string> words = {"--train", "other.json"};
    if (!run_dir.empty()) words.insert(words.end(), {"--run-dir", run_dir});
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  static Json summary(const std::string& run_dir) { return Json::read_file(*folder_ / run_dir / "summary.json"); }
  static double auc(const std::string& run_dir) { return summary(run_dir).find("metrics")->find("AUC")->number(); }
  static double loss(const std::string& run_dir) {
    return summary(run_dir).find("metrics")->find("AverageLoss")->number();
  }
  static Json statistics(const std::string& manifest) {
    const Json json = Json::read_file(*folder_ / manifest);
    const Json* found = json.find("statistics");
    return found ? *found : Json();
  }
  /// The scores of a file as text.
  static std::vector<std::string> scores(const std::string& data, const std::string& model = "run") {
    const Outcome done = run({"--predict", "config.json", "--model", model, "--data", data, "--out", "-"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    std::istringstream lines(done.out);
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) all.push_back(line.substr(line.rfind('\t') + 1));
    return {all.begin() + 1, all.end()};
  }
  static void expect_says(const Outcome& outcome, int exit_code, const std::string& text) {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << "no \"" << text << "\" in:\n" << outcome.err;
  }

  static TemporaryFolder* folder_;
  static Outcome trained_;
};
TemporaryFolder* MessyCsv::folder_ = nullptr;
Outcome MessyCsv::trained_;

TEST_F(MessyCsv, TrainsAndSaysWhatItHasLearned) {
  expect_says(trained_, 0,
              "Mean and standard deviation of 2 dense columns were computed from the first 1500 rows "
              "of 'train.csv'.");
  EXPECT_EQ(trained_.err.find("warning"), std::string::npos) << trained_.err;
  EXPECT_GT(auc("run"), 0.7);
  const Json learned = statistics("out/_model_60.json");
  ASSERT_TRUE(learned.array());
  ASSERT_EQ(learned.array()->size(), 2u);
  EXPECT_EQ(*(*learned.array())[1].find("column")->string(), "gain");
  EXPECT_TRUE(*(*learned.array())[1].find("log")->boolean());
  const Json config = Json::read_file(*folder_ / "run/config.json");
  EXPECT_EQ(*config.find("optimizer")->find("adam_hparam")->find("decay_start")->integer(), 30) << "half of the run";
}

TEST_F(MessyCsv, HasTheLossOfColumnsStandardisedByHand) {
  write_file(*folder_ / "hand.csv", standardised_rows(1));
  write_file(*folder_ / "hand_eval.csv", standardised_rows(2));
  std::string config = with_change(messy_config(kAsTheyStand), "\"train.csv\"", "\"hand.csv\"");
  config = with_change(with_change(config, "\"eval.csv\"", "\"hand_eval.csv\""), "out/", "hand/");
  const Outcome done = train(config, "by_hand");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NEAR(loss("by_hand"), loss("run"), 1e-5 * loss("run"));
  EXPECT_NEAR(auc("by_hand"), auc("run"), 1e-3);
}

TEST_F(MessyCsv, LearnsTheSameOnAnyNumberOfRanksAndReaders) {
  std::string config = with_change(messy_config(kLearned), "[0]", "[0, 1]");
  config = with_change(with_change(config, "out/", "two/"), "\"format\"", "\"num_workers\": 3, \"format\"");
  const Outcome done = train(config, "two_ranks");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(statistics("two/_model_60.json").text(), statistics("out/_model_60.json").text());
  EXPECT_NEAR(loss("two_ranks"), loss("run"), 1e-5 * loss("run"));
}

TEST_F(MessyCsv, EvaluationAndPredictionsUseTheStatisticsOfTheModel) {
  const Outcome done = run({"--eval", "config.json", "--model", "run", "--log", "json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(Json::parse(done.out, "output").find("metrics")->find("AUC")->number(), auc("run"));
  const std::vector<std::string> all = scores("eval.csv");
  ASSERT_EQ(all.size(), 300u);
  // these rows alone have another mean, which scoring must not use
  write_file(*folder_ / "some.csv", messy_rows(100, 5, 2));
  EXPECT_EQ(scores("some.csv"), std::vector<std::string>(all.begin() + 100, all.begin() + 105));
  EXPECT_EQ(scores("some.csv", "out/"), std::vector<std::string>(all.begin() + 100, all.begin() + 105));
  write_file(*folder_ / "unknown.csv", "age,gain,job,country\n40,?,NA,\n");
  EXPECT_EQ(scores("unknown.csv").size(), 1u) << "labels may lack";
}

TEST_F(MessyCsv, ARunThatGoesOnAndOneThatStartsFromTheModelKeepItsStatistics) {
  const std::string checkpoints = R"(, "checkpoint": {"folder": "ckpt", "every": 20})";
  const std::string config = with_change(messy_config(kLearned, checkpoints), "out/", "part/");
  // `part` states the schedule of `config` in steps. Fractions would refer to the 40 steps of the first part, not to
  // all 60.
  std::string part = with_change(config, "\"10%\"", "6");
  part = with_change(with_change(part, "\"decay_start\": 0.5", "\"decay_start\": 30"), "\"decay_steps\": 0.5",
                     "\"decay_steps\": 30");
  Outcome done = train(with_change(part, "\"max_iter\": 60", "\"max_iter\": 40"), "part");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  done = train(part, "", {"--resume", "latest"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.err.find("Mean and standard deviation"), std::string::npos) << "nothing is learned anew";
  EXPECT_EQ(loss("part"), loss("run"));
  EXPECT_EQ(scores("eval.csv", "ckpt"), scores("eval.csv"));

  write_file(*folder_ / "young.csv", messy_rows(40, 200, 9));
  std::string tuned = with_change(messy_config(kLearned, R"(, "dense_model_file": "out/_dense_60.model")"),
                                  "\"train.csv\"", "\"young.csv\"");
  done = train(with_change(tuned, "out/\"", "tuned/\""), "tuned");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(statistics("tuned/_model_60.json").text(), statistics("out/_model_60.json").text());
}

TEST_F(MessyCsv, AModelWithoutStatisticsIsAnError) {
  fs::create_directories(*folder_ / "bare");
  for (const char* file : {"_dense_60.model", "_dense_60.model.layout.json", "0_sparse_60.model"})
    fs::copy(*folder_ / "out" / file, *folder_ / "bare" / file);
  const std::string why =
      "has no mean and standard deviation of 'age', 'gain' (of its log), which \"standardize\" reads";
  expect_says(run({"--eval", "config.json", "--model", "bare/"}), 4, why);
  expect_says(train(messy_config(kLearned, R"(, "dense_model_file": "bare/_dense_60.model")"), "from_bare"), 4, why);
}

TEST_F(MessyCsv, ALabelThatNeverOccursIsAnErrorUnlessItIsAllowed) {
  write_file(*folder_ / "dots.csv", messy_rows(0, 300, 2, "."));  // labels end with a dot, as in the file adult.test
  const std::string why =
      "no label of 'dots.csv' is 1: none of its first 300 rows has '>50K' in column 'income'; there are '<=50K.', "
      "'>50K.'";
  expect_says(train(with_change(messy_config(kLearned), "eval.csv", "dots.csv"), "dots"), 4, why);
  write_file(*folder_ / "other.json", with_change(messy_config(kLearned), "eval.csv", "dots.csv"));
  expect_says(run({"--eval", "other.json", "--model", "run"}), 4, why);
  expect_says(run({"--eval", "other.json", "--model", "run", "--unmatched", "allow"}), 0, "warning: " + why);
}

/// The published UCI Adult files: blanks after commas, '?' for missing values, and labels that end with a dot in the
/// test set.
TEST_F(MessyCsv, TheAdultDataTrainAsTheyAre) {
  const char* given = std::getenv("HCTR_SHARED_DATA");
  const fs::path adult = (given ? fs::path(given) : source_dir() / "../shared/data") / "adult";
  if (!fs::exists(adult / "adult.data.gz"))
    GTEST_SKIP() << "no adult data at " << adult << "; set HCTR_SHARED_DATA to the folder above";
  std::string config = messy_config(
      R"("header": false, "columns": ["age", "workclass", "fnlwgt", "education", "education_num", "marital", "job",
         "relationship", "race", "sex", "gain", "loss", "hours", "country", "income"],
         "dense": [{"columns": ["age", "education_num", "hours"], "transform": "standardize"},
                   {"columns": ["gain", "loss"], "transform": ["log", "standardize"]}])");
  config = with_change(
      config, R"("columns": ["job", "country"])",
      R"("columns": ["workclass", "education", "marital", "job", "relationship", "race", "sex", "country"])");
  config = with_change(config, R"("positive": ">50K")", R"("positive": [">50K", ">50K."])");
  config = with_change(config, "\"train.csv\"", Json(fs::canonical(adult / "adult.data.gz").string()).text());
  config = with_change(config, "\"eval.csv\"", Json(fs::canonical(adult / "adult.test.gz").string()).text());
  config = with_change(with_change(config, "\"max_iter\": 60", "\"num_epochs\": 1"), "out/", "adult/");
  const Outcome done = train(with_change(config, "\"eval_interval\": 30", "\"eval_interval\": 0"), "adult");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  expect_says(done, 0, "from the first 32561 rows");
  EXPECT_GT(auc("adult"), 0.88);
}

}  // namespace
}  // namespace hctr::test
