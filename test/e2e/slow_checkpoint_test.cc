// Checkpoints that read rows from a slow disk while training continues.
#include <gtest/gtest.h>

#include <map>

#include "core/base/expect.h"
#include "core/base/platform.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

class SlowCheckpoints : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "data.json", small_config());
    make_data(folder_.path(), "data.json", 4000, 300, {"--vocabulary", "3000"});
  }
  static std::string config(const std::string& gpu, const std::string& solver) {
    std::string config = small_config();
    for (const auto& [from, to] : {std::pair<std::string, std::string>("\"batchsize\": 128", "\"batchsize\": 64"),
                                   {"\"max_iter\": 60", "\"max_iter\": 160"},
                                   {"\"embedding_vec_size\": 5", "\"embedding_vec_size\": 256"},
                                   {"\"leading_dim\": 15", "\"leading_dim\": 768"},
                                   {"\"Global\"", "\"Local\""},
                                   {"\"gpu\": [0]", "\"gpu\": " + gpu},
                                   {"\"seed\": 7", "\"seed\": 7" + solver}})
      config = with_change(config, from, to);
    return config;
  }
  Outcome in_shell(const std::string& config, const std::string& script) {
    write_file(folder_ / "this.json", config);
    const std::string train = (bin_dir() / "huge_ctr").string() + " --train this.json --run-dir run --device cpu";
    return run_program("/bin/bash", {"-c", script}, folder_.path(), {{"TRAIN", train}});
  }
  std::map<std::string, std::string> model() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_ / "run"))
      if (const std::string name = entry.path().filename();
          // the manifest is left out, because it contains the run name
          name.starts_with("final_") && name.find("_model_") == name.npos)
        found[name] = read_file(entry);
    return found;
  }
  TemporaryFolder folder_;
};

/// Rows are evicted and promoted while each checkpoint is written. Every saved checkpoint must have the state of its
/// iteration, and a run killed during a save resumes from the previous checkpoint.
TEST_F(SlowCheckpoints, AreExactAndAKillLeavesTheEarlierOne) {
  if (kSanitized) GTEST_SKIP() << "sanitizers want to be loaded first";
  for (const std::string gpu : {"[0]", "[0, 1]"}) {
    ASSERT_EQ(in_shell(config(gpu, ""), "rm -rf run; exec $TRAIN").exit_code, 0);
    const auto whole = model();
    ASSERT_GE(whole.size(), 3u);
    const std::string host = gpu == "[0]" ? "5MB" : "8MB";
    for (const std::string increments : {"", ", \"whole_every\": 3"}) {
      if (gpu != "[0]" && increments.empty()) continue;  // skipped to save time
      SCOPED_TRACE(gpu + increments);
      const std::string limited = config(gpu, cat(R"(, "table_memory": {"host": ")", host, R"(", "disk": "rows"},)",
                                                  R"( "checkpoint": {"every": 40, "keep_last": 9)", increments, "}"));
      const Outcome killed =
          in_shell(limited, cat("rm -rf run ckpt err; echo behind > fault; (export LD_PRELOAD=",
                                (bin_dir() / "libfaulty_disk.so").string(),
                                " HCTR_TEST_FAULT=$PWD/fault HCTR_TEST_FAULT_FILE=/rows/; exec $TRAIN) 2> err & ",
                                "until [ -d ckpt/iteration_000120.part ]; do kill -0 $! || break; sleep 0.01; done; ",
                                "sleep 0.1; kill -KILL $!; wait $!; code=$?; rm fault; cat err >&2; exit $code"));
      EXPECT_EQ(killed.exit_code, 128 + 9) << killed.err;
      const size_t iteration = killed.err.find("Iter: 60 "), saved = killed.err.find("ckpt/iteration_000040");
      EXPECT_LT(iteration, saved) << "training went on meanwhile\n" << killed.err;
      EXPECT_NE(saved, std::string::npos) << killed.err;
      std::vector<int64_t> iterations;
      for (const CheckpointPlace& place : list_checkpoints(folder_ / "ckpt")) iterations.push_back(place.iteration);
      EXPECT_EQ(iterations, (std::vector<int64_t>{40, 80}));
      for (const char* from : {"latest", "ckpt/iteration_000040"}) {
        const Outcome resumed = in_shell(limited, cat("exec $TRAIN --resume ", from));
        EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
        EXPECT_NE(resumed.err.find("Resuming from 'ckpt/iteration_"), std::string::npos) << resumed.err;
        EXPECT_NE(resumed.err.find(" on disk ("), std::string::npos) << resumed.err;
        const auto ended = model();
        for (const auto& [name, bytes] : whole)
          EXPECT_TRUE(ended.contains(name) && ended.at(name) == bytes) << name << " from " << from;
      }
    }
  }
}

}  // namespace
}  // namespace hctr::test
