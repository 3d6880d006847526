// Sample weights and gradient clipping in whole runs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/run_program.h"

namespace hctr::test {
namespace {

class WeightsAndClipping : public ::testing::Test {
 protected:
  /// Trains on the rows of `csv` with the columns click, weight, age, city. Returns the dense weights.
  std::vector<float> train(const std::string& run, const std::string& csv, const std::string& losses,
                           const std::vector<std::string>& more = {}) {
    write_file(folder_ / (run + ".csv"), csv);
    write_file(folder_ / (run + ".json"), R"({
      "solver": {"batchsize": 4, "max_iter": 5, "display": 0, "seed": 3, "replace_models": true, "snapshot_prefix": ")" +
                                              run + R"(_model/"},
      "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 0.5}},
      "layers": [{"type": "Data", "format": "Csv", "source": ")" +
                                              run + R"(.csv",
                  "csv": {"labels": ["click", "weight"], "dense": [{"columns": ["age"]}], "slots": [{"columns": ["city"], "buckets": 100}]},
                  "label": {"top": "both", "label_dim": 2}, "dense": {"top": "dense", "dense_dim": 1},
                  "sparse": [{"top": "keys", "slot_num": 1, "nnz_per_slot": 1}]},
                 {"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "keys", "top": "table",
                  "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum", "max_vocabulary_size_per_gpu": 100}},
                 {"type": "Slice", "bottom": "both", "top": ["click", "weight"], "ranges": [[0, 1], [1, 2]]},
                 {"type": "Reshape", "bottom": "table", "top": "flat", "leading_dim": 4},
                 {"type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
                 {"type": "InnerProduct", "bottom": "all", "top": "score", "fc_param": {"num_output": 1}},
                 )" + losses + "]}");
    std::vector<std::string> arguments = {"--train", run + ".json", "--device", "cpu", "--run-dir", run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome done = run_program("huge_ctr", arguments, folder_.path());
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const std::string bytes = read_file(folder_ / (run + "_model/_dense_5.model"));
    std::vector<float> weights(bytes.size() / sizeof(float));
    std::memcpy(weights.data(), bytes.data(), bytes.size());
    return weights;
  }
  static void expect_near(const std::vector<float>& a, const std::vector<float>& b, float error) {
    ASSERT_EQ(a.size(), b.size());
    ASSERT_FALSE(a.empty());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], error) << i;
  }

  const std::string weighted_ =
                        R"({"type": "BinaryCrossEntropyLoss", "bottom": ["score", "click", "weight"], "top": "loss"})",
                    plain_ = R"({"type": "BinaryCrossEntropyLoss", "bottom": ["score", "click"], "top": "loss"})";
  TemporaryFolder folder_;
};

constexpr const char *kHeader = "click,weight,age,city\n",
                     *kTwice = "1,1,3,Oslo\n0,1,1,Rome\n1,1,2,Paris\n1,1,2,Paris\n",
                     *kWeighted = "1,1,3,Oslo\n0,1,1,Rome\n1,2,2,Paris\n0,0,9,Nice\n";

TEST_F(WeightsAndClipping, AWeightOfTwoIsTheRowTwiceAndOneOfZeroIsNoRow) {
  const auto twice = train("twice", std::string(kHeader) + kTwice, plain_);
  expect_near(train("weighted", std::string(kHeader) + kWeighted, weighted_), twice, 1e-5f);
  const auto other = train("unweighted", std::string(kHeader) + kWeighted, plain_);
  EXPECT_GT(std::abs(other[4] - twice[4]), 1e-2f);
  expect_near(train("ranks", std::string(kHeader) + kWeighted, weighted_, {"--set", "solver.gpu=[0,1]"}), twice, 1e-5f);
}

TEST_F(WeightsAndClipping, ClippedGradientsAreThoseOfAllRanks) {
  const std::string rows = std::string(kHeader) + kTwice;
  const auto plain = train("plain", rows, plain_);
  const std::vector<std::string> norm = {"--set", "solver.clip_gradient_norm=0.05", "--set",
                                         "solver.clip_gradient_value=0.03"};
  const auto one = train("one", rows, plain_, norm);
  EXPECT_GT(std::abs(one[4] - plain[4]), 1e-3f);
  std::vector<std::string> ranks = norm;
  ranks.insert(ranks.end(), {"--set", "solver.gpu=[0,1]"});
  expect_near(train("two", rows, plain_, ranks), one, 1e-5f);
}

TEST_F(WeightsAndClipping, APositiveWeightIsThatWeightOfEachPositiveRow) {
  const auto by_rows =
      train("rows", std::string(kHeader) + "1,3,3,Oslo\n0,1,1,Rome\n1,3,2,Paris\n0,1,2,Nice\n", weighted_);
  const std::string by_class = with_change(plain_, R"("top": "loss")", R"("positive_weight": 3, "top": "loss")");
  expect_near(train("class", std::string(kHeader) + "1,1,3,Oslo\n0,1,1,Rome\n1,1,2,Paris\n0,1,2,Nice\n", by_class),
              by_rows, 1e-6f);
}

TEST_F(WeightsAndClipping, AColumnOfTheDataLayerIsTheSliceBitByBit) {
  const std::string rows = std::string(kHeader) + kWeighted;
  const auto sliced = train("sliced", rows, weighted_);
  std::string config = read_file(folder_ / "sliced.json");
  config = with_change(config, R"("labels": ["click", "weight"])", R"("labels": ["click"])");
  config = with_change(config, R"("label": {"top": "both", "label_dim": 2})",
                       R"("label": {"top": "click"}, "sample_weight": {"top": "weight", "column": "weight"})");
  config = with_change(
      config, R"({"type": "Slice", "bottom": "both", "top": ["click", "weight"], "ranges": [[0, 1], [1, 2]]},)", "");
  const auto run = [&](const std::string& text, const std::string& verb = "--train") {
    write_file(folder_ / "named.json", text);
    std::vector<std::string> words = {verb, "named.json", "--device", "cpu"};
    if (verb == "--train") words.insert(words.end(), {"--run-dir", "named"});
    return run_program("huge_ctr", words, folder_.path());
  };
  const Outcome done = run(with_change(config, "sliced_model/", "named_model/"));
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(read_file(folder_ / "named_model/_dense_5.model") == read_file(folder_ / "sliced_model/_dense_5.model"));
  // --predict writes the click column as the label.
  const Outcome scored = run_program(
      "huge_ctr",
      {"--predict", "named.json", "--model", "named", "--data", "sliced.csv", "--out", "-", "--device", "cpu"},
      folder_.path());
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  EXPECT_EQ(scored.out.rfind("row\tlabel\tscore\n0\t1\t", 0), 0u) << scored.out;

  const auto expect_says = [&](const std::string& text, const std::string& message, int code = 3) {
    const Outcome wrong = run(text, code == 3 ? "--check" : "--train");
    EXPECT_EQ(wrong.exit_code, code) << wrong.err;
    EXPECT_NE(wrong.err.find(message), std::string::npos) << wrong.err;
  };
  expect_says(with_change(config, R"(, "column": "weight"})", "}"),
              "needs \"column\", the name of the weight "
              "column");
  expect_says(with_change(config, R"("column": "weight"})", R"("column": "click"})"), "\"click\" is a label too");
  expect_says(with_change(config, R"("click", "weight"], "top": "loss")", R"("click"], "top": "loss")"),
              "no loss reads \"weight\": name it as the third bottom");
  expect_says(with_change(config, R"("label": {"top": "click"})", R"("label": {"top": "click", "label_dim": 2})"),
              "is 2, but \"labels\" of \"csv\" names 1 column");
  write_file(folder_ / "sliced.csv", with_change(rows, "1,2,2,Paris", "1,-2,2,Paris"));
  expect_says(config, "has -2 as label 1, but 'loss' needs a sample weight of 0 or more", 4);
}

TEST_F(WeightsAndClipping, RefusesWhatCannotBe) {
  write_file(folder_ / "c.json",
             with_change(small_config(), R"("regularizer": "L2")", R"("positive_weight": 0, "regularizer": "L2")"));
  const Outcome none = run_program("huge_ctr", {"--check", "c.json", "--device", "cpu"}, folder_.path());
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_NE(none.err.find("positive_weight"), std::string::npos) << none.err;
  write_file(folder_ / "c.json", with_change(small_config(), R"(["add1", "label"])", R"(["add1", "label", "dense"])"));
  const Outcome wide = run_program("huge_ctr", {"--check", "c.json", "--device", "cpu"}, folder_.path());
  EXPECT_EQ(wide.exit_code, 3);
  EXPECT_NE(wide.err.find("takes sample weights as one f32 column"), std::string::npos) << wide.err;
}

}  // namespace
}  // namespace hctr::test
