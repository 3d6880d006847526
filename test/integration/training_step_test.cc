// Reader, batch ring, model and tables together, on every device: a step has the same result in any buffer of the ring,
// on any stream and in any batch size.
#include <gtest/gtest.h>

#include <cmath>

#include "core/comm/self_comm.h"
#include "core/device/copy_bytes.h"
#include "infer/load_config.h"
#include "score/evaluator.h"
#include "support/devices.h"
#include "support/message_of.h"
#include "support/norm_file.h"
#include "support/run_program.h"
#include "support/test_log.h"
#include "train/step_pipeline.h"

namespace hctr::test {
namespace {

/// A config file with data, and the objects for training it step by step.
class TrainingStep : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "config.json", absolute(small_config()));
    make_data(folder_.path(), "config.json", 1000, 300);
  }

  /// The config with absolute data paths, so that tests need no particular working directory.
  std::string absolute(std::string config) const {
    config = with_change(config, "\"train.txt\"", "\"" + (folder_ / "train.txt").string() + "\"");
    return with_change(config, "\"eval.txt\"", "\"" + (folder_ / "eval.txt").string() + "\"");
  }

  struct Run {
    Run(const Config& of, Device device, const Log& log, int64_t dense_stride)
        : config(of),
          runtime(device, {.threads = 2, .seed = 7}),
          layout(batch_shape(config.data, config.solver.batchsize), dense_stride),
          eval_layout(batch_shape(config.data, config.solver.eval_batch()), dense_stride),
          model(config, runtime, comm, {layout.shape.samples, eval_layout.shape.samples, StepPipeline::kBuffers}),
          trainer(config, comm, model, layout, log),
          evaluator(config, comm, model, eval_layout, log) {}
    /// Trains until `steps` steps are done or the data ends. Returns the losses of all steps.
    std::vector<double> train(int64_t steps) {
      std::vector<double> losses;
      for (; done < steps; ++done) {
        if (!trainer.step(done, 0.01)) break;
        losses.push_back(trainer.finish_and_read_loss());
      }
      return losses;
    }
    Config config;
    Runtime runtime;
    SelfComm comm;
    BatchLayout layout, eval_layout;
    Replica model;
    StepPipeline trainer;
    Evaluator evaluator;
    int64_t done = 0;
  };

  /// `dense_stride`: see BatchLayout.
  std::unique_ptr<Run> run(const std::string& config, Device device, int64_t dense_stride = 0) {
    write_file(folder_ / "this.json", absolute(config));
    return std::make_unique<Run>(load_config(folder_ / "this.json", false, log_.log()), device, log_.log(),
                                 dense_stride);
  }

  TemporaryFolder folder_;
  TestLog log_;
};

const char* const kOnePass = "\"num_epochs\": 1";
const char* const kIterations = "\"max_iter\": 60";

TEST_F(TrainingStep, APartialBatchWeighsEachSampleAsAFullOneDoes) {
  // Trains on 1000 samples twice: with a batch size of 1000, and with a batch size of 1408, where the only batch is
  // partial.
  const std::string exact =
      with_change(with_change(small_config(), kIterations, kOnePass), "\"batchsize\": 128", "\"batchsize\": 1000");
  std::string padded =
      with_change(with_change(small_config(), kIterations, kOnePass), "\"batchsize\": 128", "\"batchsize\": 1408");
  padded =
      // the penalty is divided by the size of a full batch
      with_change(padded, "\"lambda\": 0.001", "\"lambda\": 0.001408");
  for (const Device device : devices()) {
    const double a = run(exact, device)->train(1).at(0), b = run(padded, device)->train(1).at(0);
    EXPECT_NEAR(a, b, 1e-6) << to_string(device);
  }
}

TEST_F(TrainingStep, TheFirstLossIsThatOfAnUntrainedModelAndFalls) {
  for (const Device device : devices()) {
    const auto losses = run(small_config(), device)->train(60);
    ASSERT_EQ(losses.size(), 60u);
    EXPECT_LT(losses.front(), 1.2);
    EXPECT_GT(losses.front(), 0.4);
    EXPECT_LT(losses.back(), losses.front()) << to_string(device);
  }
}

TEST_F(TrainingStep, QueuingStepsAheadGivesTheLossesOfWaitingForEach) {
  for (const Device device : devices()) {
    const auto waiting = run(small_config(), device);
    const double expected = waiting->train(20).back();
    const auto ahead = run(small_config(), device);
    for (int64_t i = 0; i < 20; ++i) ASSERT_TRUE(ahead->trainer.step(i, 0.01));
    EXPECT_EQ(ahead->trainer.finish_and_read_loss(), expected) << to_string(device);
  }
}

/// Trains with a layer that reads the dense values with a stride, and with a Reshape that needs contiguous values.
TEST_F(TrainingStep, DenseValuesInPaddedRowsTrainTheSameModel) {
  const std::string reshaped = with_change(
      small_config(), R"({"name": "concat1", "type": "Concat", "bottom": ["deep", "dense"])",
      R"({"name": "steps", "type": "Reshape", "bottom": "dense", "top": "steps", "leading_dim": 4, "time_step": 2},
         {"name": "again", "type": "Reshape", "bottom": "steps", "top": "again", "leading_dim": 4},
         {"name": "concat1", "type": "Concat", "bottom": ["deep", "again"])");
  const std::string multiplied = with_change(
      small_config(), R"({"name": "concat1", "type": "Concat", "bottom": ["deep", "dense"])",
      R"({"name": "first", "type": "InnerProduct", "bottom": "dense", "top": "first", "fc_param": {"num_output": 8}},
         {"name": "concat1", "type": "Concat", "bottom": ["deep", "first", "dense"])");
  for (const Device device : devices())
    for (const std::string& config : {reshaped, multiplied}) {
      const auto plain = run(config, device), padded = run(config, device, 12);
      const auto expected = plain->train(10), got = padded->train(10);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(got[i] / expected[i], 1, 1e-4) << to_string(device) << ", step " << i;
      EXPECT_NEAR(padded->evaluator.run(10)->metrics.at("AverageLoss"),
                  plain->evaluator.run(10)->metrics.at("AverageLoss"), 1e-4)
          << to_string(device);
    }
}

TEST_F(TrainingStep, AnEvaluationBetweenStepsChangesNothing) {
  for (const Device device : devices()) {
    const auto plain = run(small_config(), device), looked_at = run(small_config(), device);
    const double expected = plain->train(10).back();
    looked_at->train(5);
    const auto first = *looked_at->evaluator.run(5), second = *looked_at->evaluator.run(5);
    EXPECT_EQ(first.metrics, second.metrics) << to_string(device);
    EXPECT_EQ(first.samples, 300);
    EXPECT_EQ(looked_at->train(10).back(), expected) << to_string(device);
  }
}

TEST_F(TrainingStep, AnEpochEndsWithThePartialBatchAndStartsAnew) {
  for (const Device device : devices()) {
    const auto once = run(with_change(small_config(), kIterations, kOnePass), device);
    EXPECT_EQ(once->train(100).size(), 8u);  // 7 batches of 128 and one of 104
    once->trainer.restart();
    EXPECT_EQ(once->trainer.step(8, 0.01), 128);
  }
}

TEST_F(TrainingStep, ASavedModelLoadedElsewhereGivesTheSamePredictions) {
  for (const Device device : devices()) {
    const auto first = run(small_config(), device);
    first->train(20);
    const auto files = first->model.save((folder_ / "saved").string() + "/", 20);
    ASSERT_EQ(files.size(), 5u) << "dense, two tables, layout, manifest";
    const std::string loaded =
        with_change(small_config(), "\"seed\": 7",
                    "\"dense_model_file\": \"" + files[0].string() + "\", \"sparse_model_file\": [\"" +
                        files[1].string() + "\", \"" + files[2].string() + "\"]");
    for (const Device other : devices()) {
      const auto second = run(loaded, other);
      second->model.load();
      const auto expected = first->evaluator.run(20)->metrics, got = second->evaluator.run(0)->metrics;
      EXPECT_NEAR(got.at("AverageLoss"), expected.at("AverageLoss"), other == device ? 0 : 1e-6)
          << to_string(device) << " to " << to_string(other);
    }
  }
}

std::string in_precision(const std::string& word) {
  return with_change(small_config(), "\"seed\": 7", "\"seed\": 7, \"mixed_precision\": " + word);
}

TEST_F(TrainingStep, MixedPrecisionFollowsFp32) {
  for (const Device device : devices()) {
    const auto exact = run(small_config(), device)->train(60);
    for (const auto& [word, rounding] :
         {std::pair("true", 0.002), std::pair("1024", 0.002), std::pair("\"bf16\"", 0.01)}) {
      const auto mixed = run(in_precision(word), device)->train(60);
      // Rounding changes the weights, and the difference accumulates over the steps. The tolerance grows by 10 % of
      // `rounding` per step.
      for (size_t i = 0; i < exact.size(); ++i)
        EXPECT_NEAR(mixed[i] / exact[i], 1, rounding * (1 + 0.1 * static_cast<double>(i)))
            << word << " on " << to_string(device) << ", step " << i;
    }
  }
}

TEST_F(TrainingStep, AnOverflowChangesNeitherWeightsNorRows) {
  for (const Device device : devices()) {
    const auto overflowing = run(in_precision("1e9"), device), still = run(small_config(), device);
    overflowing->train(4);
    ASSERT_EQ(overflowing->model.loss_scale()->skipped, 4) << to_string(device);
    // with learning rate 0, every batch adds new rows, but weights do not change
    for (int64_t i = 0; i < 4; ++i) still->trainer.step(i, 0.0);
    const auto got = overflowing->model.save((folder_ / "overflowing").string() + "/", 4),
               expected = still->model.save((folder_ / "still").string() + "/", 4);
    for (size_t f = 0; f + 1 < expected.size(); ++f)  // all files except the manifest, which counts updates
      EXPECT_TRUE(read_file(got[f]) == read_file(expected[f])) << expected[f] << " on " << to_string(device);
  }
}

/// The third batch contains a dense value whose square is infinite.
TEST_F(TrainingStep, ALossThatIsNotFiniteChangesNothingFromThereOn) {
  const std::string squares = with_change(
      with_change(small_config(), R"({"name": "concat1", "type": "Concat", "bottom": ["deep", "dense"])",
                  R"({"name": "mul", "type": "ElementwiseMultiply", "bottom": ["dense", "dense"], "top": "mul"},
                     {"name": "concat1", "type": "Concat", "bottom": ["deep", "mul"])"),
      "\"lambda\": 0.001", "\"lambda\": 0");
  set_norm_float(listed_file(folder_ / "train.txt", 2), 50, 2, 3e19f);  // the set has 8 files with 125 records each
  for (const Device device : devices()) {
    const auto stopped = run(squares, device), still = run(squares, device);
    const auto losses = stopped->train(7);
    EXPECT_FALSE(std::isfinite(losses[2])) << to_string(device);
    EXPECT_TRUE(std::isfinite(losses[3])) << to_string(device);
    EXPECT_EQ(stopped->trainer.step_not_finite(), 2);
    // on a GPU, the last steps may not have been checked yet
    EXPECT_GE(stopped->trainer.steps_not_finite(), device.is_cuda() ? 1 : 5);
    for (int64_t i = 0; i < 7; ++i) still->trainer.step(i, i < 2 ? 0.01 : 0.0);
    EXPECT_EQ(message_of(Kind::data, [&] { still->trainer.read_again(0); }),
              "the batch of iteration 1 is no longer in memory");
    const auto got = stopped->model.save((folder_ / "stopped").string() + "/", 7),
               expected = still->model.save((folder_ / "still").string() + "/", 7);
    for (size_t f = 0; f + 1 < expected.size(); ++f)  // all files except the manifest, which counts updates
      EXPECT_TRUE(read_file(got[f]) == read_file(expected[f])) << expected[f] << " on " << to_string(device);
  }
}

TEST_F(TrainingStep, DevicesAgreeStepByStep) {
  HCTR_SKIP_WITHOUT_GPU();
  const auto on_cpu = run(small_config(), kCpu)->train(10), on_gpu = run(small_config(), kGpu)->train(10);
  for (size_t i = 0; i < on_cpu.size(); ++i) EXPECT_NEAR(on_gpu[i] / on_cpu[i], 1, 1e-5) << "step " << i;
}

}  // namespace
}  // namespace hctr::test
