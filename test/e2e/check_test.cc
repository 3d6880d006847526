// huge_ctr --check: predicts the cost of a config; with --check-data it also checks the data.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "core/base/expect.h"
#include "core/base/platform.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

class CheckCommandLine : public ::testing::Test {
 protected:
  CheckCommandLine() { write_file(folder_ / "model.json", small_config()); }
  Outcome check(std::vector<std::string> more) {
    more.insert(more.begin(), {"--check", "model.json"});
    return run_program("huge_ctr", more, folder_.path());
  }
  Json json(std::vector<std::string> more) {
    more.insert(more.end(), {"--format", "json", "--device", "cpu"});
    const Outcome done = check(std::move(more));
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return Json::parse(done.out, "the result of --check");
  }

  TemporaryFolder folder_;
};

TEST_F(CheckCommandLine, SaysWhatEachGpuNeedsAndWhetherItFits) {
  const Json two = json({"--gpus", "2", "--gpu-memory", "80"});
  const Json& memory = *two.find("memory");
  EXPECT_EQ(memory.find("gpus")->array()->size(), 2u);
  EXPECT_TRUE(*memory.find("fits")->boolean());
  EXPECT_EQ(*memory.find("samples")->integer(), 64);
  const Json& parts = *(*memory.find("gpus")->array())[0].find("parts");
  for (const char* name :
       {"dense weights", "activations in training", "rows of table deep_emb", "exchange between ranks", "batches"})
    EXPECT_GT(*parts.find(name)->integer(), 0) << name;
  EXPECT_EQ(two.find("step"), nullptr);  // a step time is predicted only for a named GPU
  const Json little = json({"--gpu-memory", "0.1"});
  EXPECT_FALSE(*little.find("memory")->find("fits")->boolean());
  EXPECT_EQ(little.find("memory")->find("enough_gpus"), nullptr) << "CUDA alone needs more on each GPU";
  const Outcome text = check({"--gpu-memory", "0.1", "--device", "cpu"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_NE(text.out.find("It does not fit: GPU 0 needs "), std::string::npos) << text.out;
  EXPECT_EQ(json({}).find("memory")->find("fits"), nullptr);
}

TEST_F(CheckCommandLine, ChecksAllGpusAsThoseOfTheMachineOrOne) {
  const Outcome all = check({"--set", "solver.gpu=all", "--device", "cpu", "--gpu-memory", "80"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_NE(all.err.find("/solver/gpu is \"all\", so this check is for 1 GPU"), std::string::npos) << all.err;
  EXPECT_NE(all.out.find("It fits"), std::string::npos) << all.out;
}

TEST_F(CheckCommandLine, NamesFoldersThatCannotBeWritten) {
  write_file(folder_ / "taken", "a file");
  const Outcome done = check({"--set", "solver.snapshot_prefix=taken/model_", "--device", "cpu"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_NE(done.out.find("warning: /solver/snapshot_prefix: 'taken' is a file; expected a folder"), std::string::npos)
      << done.out;
  EXPECT_TRUE(json({}).find("unwritable")->array()->empty());
}

TEST_F(CheckCommandLine, LooksIntoTheData) {
  make_data(folder_.path(), "model.json", 3000, 200);
  const Json found = json({"--check-data", "--gpu-name", "H100"});
  const Json::Array& sets = *found.find("data")->array();
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(*sets[0].find("samples")->integer(), 3000);
  EXPECT_EQ(sets[0].find("slots")->array()->size(), 4u);
  EXPECT_DOUBLE_EQ((*sets[0].find("labels")->array())[0].find("most")->number(), 1);
  EXPECT_TRUE(*found.find("step")->find("keys_counted")->boolean());
  ASSERT_TRUE(sets[1].find("unmatched_keys"));
  EXPECT_EQ(sets[1].find("unmatched_keys")->object()->size(), 4u);
  const Outcome text = check({"--check-data", "--device", "cpu"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("model.json: OK"), std::string::npos);
  EXPECT_NE(text.out.find("keys that the 3000 training samples lack: "), std::string::npos) << text.out;

  // A sample with more keys than the config allows is reported as a problem of the data, with its position.
  const Outcome wrong = check({"--check-data", "--device", "cpu", "--set", "layers.Data.sparse.1.max_nnz=1", "--set",
                               "layers.Data.sparse.1.max_feature_num_per_sample=3"});
  EXPECT_EQ(wrong.exit_code, 4) << wrong.out;
  EXPECT_NE(wrong.out.find("problem: "), std::string::npos) << wrong.out;
  EXPECT_EQ(wrong.out.find(": OK"), std::string::npos);
  EXPECT_EQ(run_program("huge_ctr", {"--check", "model.json", "--check-data", "--set", "layers.Data.source=gone.txt"},
                        folder_.path())
                .exit_code,
            5);
}

/// Checking a config with 100,000 unknown keys, all of them duplicated in the included file, takes seconds.
TEST_F(CheckCommandLine, OfAHundredThousandUnknownKeysTakesSeconds) {
  if (kSanitized) GTEST_SKIP() << "it is about time";
  std::string keys;
  for (int i = 0; i < 100000; ++i) keys += cat("\"unknown_key_", i, "\": 1, ");
  write_file(folder_ / "base.json", with_change(small_config(), "\"seed\": 7", keys + "\"seed\": 7"));
  write_file(folder_ / "over.json", "{\"include\": \"base.json\", \"solver\": {" + keys + "\"seed\": 7}}");
  const auto begin = std::chrono::steady_clock::now();
  const Outcome checked = run_program("huge_ctr", {"--check", "over.json", "--device", "cpu"}, folder_.path());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_EQ(checked.exit_code, 3);
  EXPECT_NE(checked.err.find("100000 problems"), std::string::npos) << checked.err.substr(0, 1000);
  EXPECT_LT(seconds, 60);
}

TEST_F(CheckCommandLine, RefusesOptionsOfOtherCommandsAndUnknownGpus) {
  EXPECT_EQ(run_program("huge_ctr", {"--train", "model.json", "--gpu-memory", "80"}, folder_.path()).exit_code, 2);
  const Outcome unknown = check({"--gpu-name", "H9000"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("H100"), std::string::npos) << unknown.err;
}

/// Without reading data, --check predicts approximately the step times that docs/performance.md states for one H100,
/// half precision and batch size 16,384.
TEST_F(CheckCommandLine, ExpectsTheMeasuredStepsOfAnH100) {
  const auto script = source_dir() / "tools/bench/model_configs.py";
  ASSERT_EQ(run_program("/usr/bin/env", {"python3", script.string(), "."}, folder_.path()).exit_code, 0);
  for (const auto& [model, ms] : {std::pair("wdl", 0.641), {"dcn", 0.826}, {"deepfm", 0.602}, {"dlrm", 1.103}}) {
    const Outcome done = run_program(
        "huge_ctr", {"--check", cat("step_", model, "_half.json"), "--gpu-name", "H100", "--format", "json"},
        folder_.path());
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const Json result = Json::parse(done.out, model);
    EXPECT_NEAR(result.find("step")->find("ms")->number(), ms, 0.3 * ms) << model;
  }
}

}  // namespace
}  // namespace hctr::test
