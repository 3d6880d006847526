// A run that trains on no sample fails with an error that explains the cause, and saves no model.
#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

class TrainsNothing : public testing::Test {
 protected:
  /// Writes rows of a label, a weight and a value. The file ends with an invalid record.
  void write_rows(int count, const std::string& label, const std::string& weight) {
    std::string text = "y,z,w,x\n";
    for (int r = 0; r < count; ++r) text += cat(label.empty() ? cat(r % 2) : label, ",1,", weight, ",", r % 7, "\n");
    write_file(folder_ / "rows.csv", text + "1,1,1,oops\n");
  }
  Outcome train(const std::string& solver, const std::string& losses, const std::vector<std::string>& more = {}) {
    write_file(folder_ / "config.json",
               R"({"solver": {"seed": 1, "display": 0, "replace_models": true, "snapshot_prefix": "out/", )" + solver +
                   R"(}, "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 0.1}},
      "layers": [{"type": "Data", "format": "Csv", "source": "rows.csv", "bad_records": "skip",
                  "csv": {"labels": ["y", "z"], "dense": [{"columns": ["x"]}]}, "label": {"top": "label", "label_dim": 2},
                  "sample_weight": {"top": "weight", "column": "w"}, "dense": {"top": "dense", "dense_dim": 1},
                  "sparse": []},
                 {"type": "Slice", "bottom": "label", "top": ["first", "second"], "ranges": [[0, 1], [1, 2]]},
                 {"type": "InnerProduct", "bottom": "dense", "top": "a", "fc_param": {"num_output": 1}},
                 {"type": "InnerProduct", "bottom": "dense", "top": "b", "fc_param": {"num_output": 1}}, )" +
                   losses + "]}");
    std::vector<std::string> words = {"--train", "config.json", "--device", "cpu", "--run-dir", "run"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program("huge_ctr", words, folder_.path());
  }
  int models() const {
    int count = 0;
    for (const char* in : {"out", "run"})
      if (fs::exists(folder_ / in))
        for (const auto& entry : fs::directory_iterator(folder_ / in)) count += entry.path().extension() == ".model";
    return count;
  }
  void expect_nothing(const Outcome& run, const std::string& why) const {
    EXPECT_EQ(run.exit_code, 4) << run.err;
    EXPECT_NE(run.err.find(cat("'rows.csv': nothing was trained: ", why, "; no model is saved")), std::string::npos)
        << run.err;
    EXPECT_EQ(models(), 0);
  }

  static constexpr const char* kLosses =
      R"({"type": "BinaryCrossEntropyLoss", "bottom": ["a", "first", "weight"], "top": "one"},
         {"type": "MultiCrossEntropyLoss", "bottom": ["b", "second", "weight"], "top": "two", "target_weight": [1]})";
  TemporaryFolder folder_;
};

TEST_F(TrainsNothing, WhereNoBatchIsEverFull) {
  write_rows(41, "", "1");
  const std::string few = R"("batchsize": 64, "num_epochs": 1000000, "compatibility": ["drop_partial_batches"])";
  const std::string why =
      "the set has 41 samples, fewer than \"batchsize\" 64: no batch is full, and \"drop_partial_batches\" drops the "
      "last one";
  expect_nothing(train(few, kLosses), why);
  expect_nothing(train(few, kLosses, {"--set", "solver.gpu=[0,1]"}), why);
}

TEST_F(TrainsNothing, WhereEveryWeightIsZero) {
  write_rows(64, "", "0");
  expect_nothing(
      train(R"("batchsize": 16, "max_iter": 9, "snapshot": 2)", kLosses, {"--set", "solver.gpu=[0,1]"}),
      "none of 144 samples counts: of loss 'one' every weight is 0 (\"sample_weight\" is column 'w'); of loss "
      "'two' every weight is 0 (\"sample_weight\" is column 'w')");
}

TEST_F(TrainsNothing, WhereOneOfTwoLossesHasNoLabelOnlyThatIsWarnedOf) {
  write_rows(64, "", "2");
  std::string rows = read_file(folder_ / "rows.csv");
  for (size_t at; (at = rows.find(",1,2,")) != rows.npos;) rows.replace(at, 5, ",-1,2,");
  write_file(folder_ / "rows.csv", rows);
  const Outcome run = train(R"("batchsize": 16, "max_iter": 9, "eval_interval": 9, "eval_metrics": ["AverageLoss"])",
                            kLosses, {"--set", "layers.Data.eval_source=rows.csv"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.err.find("Evaluation, AverageLoss/two: not defined: every label is missing"), std::string::npos)
      << run.err;
  EXPECT_NE(run.err.find("warning: no sample contributes to loss 'two': every label is missing; the layers"),
            std::string::npos)
      << run.err;
  EXPECT_GT(models(), 0);
}

TEST_F(TrainsNothing, ARunThatGoesOnRemembersWhatHasCounted) {
  write_rows(32, "", "1");
  const auto until = [](int steps) {
    return cat(R"("batchsize": 16, "max_iter": )", steps, R"(, "checkpoint": {"every": 1, "folder": "ckpt"})");
  };
  ASSERT_EQ(train(until(2), kLosses).exit_code, 0);
  const std::string rows = read_file(folder_ / "rows.csv");
  std::string zeros = rows;
  for (size_t at; (at = zeros.find(",1,1,")) != zeros.npos;) zeros.replace(at, 5, ",1,0,");
  write_file(folder_ / "rows.csv", zeros);  // now all weights are 0; the size of the file is unchanged
  const Outcome on = train(until(4), kLosses, {"--resume", "latest"});
  EXPECT_EQ(on.exit_code, 0) << on.err;
}

}  // namespace
}  // namespace hctr::test
