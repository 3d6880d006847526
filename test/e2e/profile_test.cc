// huge_ctr --profile: the times of the parts add up to the step time, the FLOP and byte counts match the model, and
// training results are unchanged.
#include <gtest/gtest.h>

#include <map>

#include "support/run_program.h"

namespace hctr::test {
namespace {

class Profile : public ::testing::Test {
 protected:
  Profile() {
    write_file(folder_ / "model.json", small_config());
    make_data(folder_.path(), "model.json", 3000, 200);
  }
  Outcome train(const std::string& run, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--train", "model.json", "--device", "cpu", "--run-dir", run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome done = run_program("huge_ctr", arguments, folder_.path());
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done;
  }
  Json profile(const std::string& run) { return Json::read_file(folder_ / run / "profile.json"); }
  std::string model(const std::string& run) { return read_file(folder_ / run / "final__dense_60.model"); }

  TemporaryFolder folder_;
};

TEST_F(Profile, HoldsEveryLayerAndNoMoreThanTheStep) {
  const Outcome done = train("run", {"--profile"});
  const Json report = profile("run");
  EXPECT_EQ(*report.find("steps")->integer(), 20);
  EXPECT_EQ(*report.find("samples")->integer(), 128);
  const double step = report.find("step_ms")->number(), sum = report.find("parts_ms")->number();
  // Not tested: the idle share, which depends on the machine's other load. docs/performance.md has measured values.
  EXPECT_NEAR(sum + report.find("idle_ms")->number(), step, 1e-9 * step);
  std::map<std::string, Json> parts;
  double in_json = 0, shares = 0;
  for (const Json& part : *report.find("parts")->array()) {
    parts[*part.find("part")->string() + " " + *part.find("name")->string()] = part;
    in_json += part.find("ms")->number();
    shares += part.find("share")->number();
    EXPECT_EQ(part.find("beside")->array()->size(), 0u) << "one after another on a CPU";
  }
  EXPECT_NEAR(in_json, sum, 1e-9);
  EXPECT_NEAR(shares, sum / step, 1e-9);
  for (const char* part :
       {"prepare wide_emb", "prepare deep_emb", "forward wide_emb", "update deep_emb", "forward concat1", "forward fc1",
        "backward fc1", "weight gradients fc1", "forward loss", "backward loss", "update all weights"})
    EXPECT_TRUE(parts.contains(part)) << part << " in " << done.err;
  EXPECT_FALSE(parts.contains("forward fc2")) << "the loss runs the layer of its logits";
  // FLOPs of a GEMM of 128 samples with a 19 by 16 weight matrix. Bytes of its inputs, weights and outputs.
  EXPECT_NEAR(parts["forward fc1"].find("flops")->number(), 2.0 * 128 * 19 * 16, 1e-3);
  EXPECT_NEAR(parts["weight gradients fc1"].find("flops")->number(), 2.0 * 128 * 19 * 16, 1e-3);
  EXPECT_GE(parts["forward fc1"].find("bytes")->number(), 4.0 * (128 * 19 + 19 * 16 + 16 + 128 * 16));
  EXPECT_GT(report.find("ceilings")->find("copy_gb_per_s")->number(), 0);
  EXPECT_GT(report.find("ceilings")->find("product_gflop_per_s")->number(), 0);
  EXPECT_NE(done.err.find("Profile of 20 steps of 128 samples"), std::string::npos) << done.err;
  EXPECT_NE(done.err.find(*report.find("bottleneck")->string()), std::string::npos) << done.err;
}

/// With rows on disk, waiting for eviction and fetches is a separate part of the profile.
TEST_F(Profile, OfRowsOnADiskHasTheWaitForThem) {
  std::string config = with_change(small_config(), R"("update_type": "Global")", R"("update_type": "Local")");
  config = with_change(config, R"("embedding_vec_size": 5)", R"("embedding_vec_size": 1024)");
  config = with_change(config, R"("leading_dim": 15)", R"("leading_dim": 3072)");
  config = with_change(config, R"("batchsize": 128)", R"("batchsize": 8)");
  config = with_change(config, R"("max_iter": 60)", R"("max_iter": 200)");
  config = with_change(config, R"("seed": 7)", R"("seed": 7, "table_memory": {"host": "4MB", "disk": "rows"})");
  write_file(folder_ / "model.json", config);
  const Outcome done = train("run", {"--profile"});
  const Json report = profile("run");
  const double step = report.find("step_ms")->number(), sum = report.find("parts_ms")->number();
  EXPECT_NEAR(sum + report.find("idle_ms")->number(), step, 1e-9 * step);
  double wait = 0, prepare = 0;
  for (const Json& part : *report.find("parts")->array()) {
    if (*part.find("part")->string() == "wait" && *part.find("type")->string() == "disk")
      wait = part.find("ms")->number();
    if (*part.find("part")->string() == "prepare") prepare += part.find("ms")->number();
  }
  EXPECT_GT(wait, 0) << done.err;
  EXPECT_LT(wait, step);
  EXPECT_GT(prepare, 0) << done.err;
  EXPECT_EQ(done.err.find("Table '"), std::string::npos) << "figures of memory are in metrics.jsonl: " << done.err;
}

TEST_F(Profile, ChangesNoNumber) {
  train("plain", {});
  train("profiled", {"--profile"});
  EXPECT_EQ(model("plain"), model("profiled"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "plain/profile.json"));
}

TEST_F(Profile, OfAShortRunMeasuresWhatThereIs) {
  train("run", {"--profile", "--max-iter", "8"});
  EXPECT_EQ(*profile("run").find("steps")->integer(), 4);
  train("one", {"--profile", "--max-iter", "1"});
  EXPECT_EQ(*profile("one").find("steps")->integer(), 1);
}

TEST_F(Profile, OfARunThatEndsTooEarlySaysSo) {
  write_file(folder_ / "model.json", with_change(small_config(), R"("max_iter": 60)", R"("num_epochs": 1)"));
  make_data(folder_.path(), "model.json", 700, 200, {"--force"});
  const Outcome done = train("run", {"--profile"});
  EXPECT_NE(done.err.find("--profile: the run has too few steps to measure"), std::string::npos) << done.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/profile.json"));
}

}  // namespace
}  // namespace hctr::test
