// A run whose loss is not finite reports the origin: layer, sample and record, on each device.
#include <gtest/gtest.h>

#include "ranks_fixture.h"
#include "support/norm_file.h"

namespace hctr::test {
namespace {

class NotFiniteLoss : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "data.json", small_config());
    make_data(folder_.path(), "data.json", 2000, 500);
    file_ = listed_file(folder_ / "train.txt", 0);
  }
  static std::vector<std::string> devices_here() {
    std::vector<std::string> names = {"cpu"};
    if (find_gpus().count > 0) names.push_back("cuda");
    return names;
  }
  /// A config that squares the dense values.
  static std::string squaring() {
    return with_change(small_config(), R"({"name": "concat1", "type": "Concat", "bottom": ["deep", "dense"])",
                       R"({"name": "mul", "type": "ElementwiseMultiply", "bottom": ["dense", "dense"], "top": "mul"},
                          {"name": "concat1", "type": "Concat", "bottom": ["deep", "mul"])");
  }
  /// Trains on each device of this machine, and on two ranks if there are two devices. The error message must contain
  /// every string of `pieces`.
  void expect_said(const std::string& config, const std::vector<std::string>& pieces) {
    for (const std::string& device : devices_here())
      for (const char* gpu : {"[0]", "[0, 1]"}) {
        if (device == "cuda" && gpu != std::string("[0]") && !why_not_here({gpu}).empty()) continue;
        SCOPED_TRACE(cat(device, " ", gpu));
        write_file(folder_ / "config.json", with_change(config, "\"gpu\": [0]", cat("\"gpu\": ", gpu)));
        const Outcome outcome =
            run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run", "--device", device}, folder_.path());
        EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
        for (const std::string& piece : pieces)
          EXPECT_NE(outcome.err.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << outcome.err;
        fs::remove_all(folder_ / "run");
      }
  }
  std::string record(size_t number) const {
    return cat("'train.txt': sample ", number, ", record ", number, " of '", file_.filename().string(), "')");
  }

  TemporaryFolder folder_;
  fs::path file_;
};

TEST_F(NotFiniteLoss, OfAnOverflowNamesLayerSampleAndRecord) {
  // Records 200 and 250 are in the second batch of 128. With two ranks they belong to the second rank.
  for (const size_t before : {size_t{199}, size_t{249}}) set_norm_float(file_, before, 3, 3e19f);
  expect_said(squaring(),
              {"the loss is not a number at iteration 2: layer 'mul' (ElementwiseMultiply) gives inf for sample ",
               "72 of the batch (" + record(200), "an overflow, with inputs up to 3e+19"});
  // The same records have another batch and sample number in batches of 96.
  const std::string epochs = with_change(squaring(), "\"max_iter\": 60", "\"num_epochs\": 2");
  expect_said(with_change(epochs, "\"batchsize\": 128", "\"batchsize\": 96"),
              {"iteration 3: layer 'mul'", "for sample 8 of the batch (" + record(200)});
}

TEST_F(NotFiniteLoss, OfAGradientNamesLayerAndSample) {
  // Losses are finite, but gradients exceed the f16 range in every step. The error names a later step, which depends on
  // how many steps the GPU had queued. Therefore the test expects neither a label of the sample nor a sign of the
  // gradient.
  const std::string scaled =
      with_change(small_config(), "\"batchsize\": 128", "\"batchsize\": 128, \"mixed_precision\": 1e9");
  expect_said(with_change(scaled, "\"max_iter\": 60", "\"max_iter\": 400"),
              {"a gradient is infinite or NaN at iteration 10",
               "the gradient of 'add1' that layer 'loss' (BinaryCrossEntropyLoss) computes is ",
               "inf for sample 1 of the batch", "and 127 others; f16 represents numbers up to 65504"});
}

TEST_F(NotFiniteLoss, InTheSecondEpochNamesTheRecordOfTheFirst) {
  // The values of the first epoch are finite. Then the file changes, and the reader does not notice.
  const std::string config =
      with_change(with_change(squaring(), "\"max_iter\": 60", "\"max_iter\": 40"), "\"batchsize\": 128",
                  "\"batchsize\": 500, \"checkpoint\": {\"every\": 1, \"folder\": \"ckpt\"}");
  write_file(folder_ / "config.json", with_change(config, "\"max_iter\": 40", "\"max_iter\": 6"));
  const std::vector<std::string> arguments = {"--train", "config.json", "--run-dir", "run", "--device", "cpu"};
  ASSERT_EQ(run_program("huge_ctr", arguments, folder_.path()).exit_code, 0);
  set_norm_float(file_, 20, 1, 3e19f);
  write_file(folder_ / "config.json", config);
  std::vector<std::string> resume = arguments;
  resume.insert(resume.end(), {"--resume", "latest"});
  const Outcome outcome = run_program("huge_ctr", resume, folder_.path());
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  EXPECT_NE(outcome.err.find("at iteration 9: layer 'mul'"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("for sample 21 of the batch (" + record(21)), std::string::npos) << outcome.err;
}

TEST_F(NotFiniteLoss, OfWeightsNamesThemAndTheUpdate) {
  const std::string diverging = with_change(small_config(), "\"learning_rate\": 0.01", "\"learning_rate\": 1e38");
  // Rows with values of 1e38 are finite, but the products with the weights are not.
  expect_said(diverging,
              {"the loss is not a number at iteration 2: ", "an overflow, with inputs up to ", " and weights up to "});
  const std::string infinite = with_change(sgd(small_config()), "\"learning_rate\": 0.3", "\"learning_rate\": 3e38");
  const std::string weighted = with_change(infinite, "\"lambda\": 0.001", "\"lambda\": 0.001, \"loss_weight\": 1e6");
  expect_said(weighted,
              {"the loss is not a number at iteration 2: ", "holds ", "caused by an update at or before iteration 1"});
}

/// Rows become infinite, but no later batch contains them, so losses stay finite.
TEST_F(NotFiniteLoss, WhereOnlyAGradientIsItNamesTheRowBeforeAnythingIsSaved) {
  make_data(folder_.path(), "data.json", 2000, 500, {"--vocabulary", "1000000", "--alpha", "0", "--force"});
  file_ = listed_file(folder_ / "train.txt", 0);
  const std::string small = with_change(with_change(small_config(), "\"batchsize\": 128", "\"batchsize\": 4"),
                                        "\"lambda\": 0.001", "\"lambda\": 0.001, \"loss_weight\": 100");
  for (const char* optimizer : {R"({"type": "SGD", "sgd_hparam": {"learning_rate": 3e38}})",
                                R"({"type": "AdaGrad", "adagrad_hparam": {"learning_rate": 3e38}})"}) {
    const std::string wide =
        with_change(small, R"("bottom": "wide_data", "top": "wide_emb",)",
                    cat(R"("bottom": "wide_data", "top": "wide_emb", "optimizer": )", optimizer, ","));
    const std::vector<std::string> pieces = {"an update made the model infinite or NaN at iteration 1: the ",
                                             " of embedding 'wide_emb' holds ",
                                             "caused by an update at or before iteration 1", "The model is not saved"};
    expect_said(wide, pieces);
    // The check runs before the first evaluation, before a checkpoint and before a snapshot, and at the last step.
    for (const char* change : {"\"eval_interval\": 1", "\"eval_interval\": 30, \"checkpoint\": {\"every\": 1}"}) {
      const std::string early = with_change(wide, "\"eval_interval\": 30", change);
      expect_said(early, pieces);
      EXPECT_FALSE(fs::exists(folder_ / "ckpt" / "iteration_000001"));
    }
    expect_said(with_change(wide, "\"snapshot\": 1000000", "\"snapshot\": 1"), pieces);
    expect_said(with_change(wide, "\"max_iter\": 60", "\"max_iter\": 1"), pieces);
    EXPECT_FALSE(fs::exists(folder_ / "out" / "_dense_1.model"));
  }
}

TEST_F(NotFiniteLoss, OfAValueBeyondHalfPrecisionNamesIt) {
  set_norm_float(file_, 40, 3, 1e6f);
  // A batch is the whole data set, so every step is not finite.
  const std::string all =
      with_change(with_change(small_config(), "\"batchsize\": 128", "\"batchsize\": 2000, \"mixed_precision\": true"),
                  "\"max_iter\": 60", "\"max_iter\": 400");
  expect_said(all, {"dense value 2 is 1e+06 for sample 41 of the batch (" + record(41),
                    " in the data; f16 represents numbers up to 65504"});
}

}  // namespace
}  // namespace hctr::test
