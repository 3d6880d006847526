// Look-ahead with several ranks in one process. A rank also receives the keys of the other ranks' samples.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/comm/self_comm.h"
#include "infer/load_config.h"
#include "support/devices.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"
#include "support/test_log.h"
#include "train/step_pipeline.h"

namespace hctr::test {
namespace {

/// A trainer with rows on disk. Trainers share only the look-ahead group, so their steps need no synchronization. Each
/// trainer has all rows of its model, so other trainers may request any key from it.
struct TrainerOnDisk {
  TrainerOnDisk(const Config& of, const Log& log, std::shared_ptr<LookAheadGroup> group)
      : config(of),
        runtime(kCpu,
                {.threads = 1, .seed = 7, .row_memory = row_memory_limits(config.solver.table_memory, kCpu, comm)}),
        layout(batch_shape(config.data, config.solver.batchsize)),
        model(config, runtime, comm, {layout.shape.samples, 1, StepPipeline::kBuffers}),
        trainer(config, comm, model, layout, log, {.peers = std::move(group)}) {}
  void train(int steps) {
    for (; steps > 0; --steps) trainer.step(done++, 0.01);
    trainer.finish_and_read_loss();
  }
  int64_t rows_ahead() const { return model.table_counts().at("deep_emb")["rows_from_disk_ahead"]; }

  Config config;
  SelfComm comm;
  Runtime runtime;
  BatchLayout layout;
  Replica model;
  StepPipeline trainer;
  int64_t done = 0;
};

class LookAheadOfRanks : public testing::Test {
 protected:
  void SetUp() override {
    const auto path = [&](const char* name) { return cat("\"", (folder_ / name).string(), "\""); };
    std::string config = with_change(small_config(), "\"train.txt\"", path("train.txt"));
    config = with_change(config, "\"eval.txt\"", path("eval.txt"));
    config = with_change(config, "\"update_type\": \"Global\"", "\"update_type\": \"Local\"");
    config = with_change(config, "\"embedding_vec_size\": 5", "\"embedding_vec_size\": 1024");
    config = with_change(config, "\"leading_dim\": 15", "\"leading_dim\": 3072");
    config = with_change(config, "\"batchsize\": 128", "\"batchsize\": 8");
    config = with_change(config, "\"seed\": 7",
                         cat(R"("seed": 7, "table_memory": {"host": "4MB", "disk": )", path("rows"), "}"));
    write_file(folder_ / "config.json", config);
    make_data(folder_.path(), "config.json", 1000, 300);
  }
  std::unique_ptr<TrainerOnDisk> trainer(std::shared_ptr<LookAheadGroup> group) {
    return std::make_unique<TrainerOnDisk>(load_config(folder_ / "config.json", false, log_.log()), log_.log(),
                                           std::move(group));
  }
  TemporaryFolder folder_;
  TestLog log_;
};

/// A rank that runs no step still prefetches rows for the other ranks of its group, and for no other group.
TEST_F(LookAheadOfRanks, RowsThatAnotherRankWillNeedAreAskedFor) {
  const auto group = std::make_shared<LookAheadGroup>();
  const auto waiting = trainer(group), going = trainer(group), alone = trainer(nullptr);
  waiting->train(20);
  alone->train(20);
  // Waits until the prefetch of the trainer's own next batches has finished.
  const auto settled = [](const TrainerOnDisk& of) {
    for (int64_t before = -1, now = of.rows_ahead();; now = of.rows_ahead()) {
      if (now == before) return now;
      before = now;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  };
  const int64_t before = settled(*waiting), alone_before = settled(*alone);
  going->train(40);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (waiting->rows_ahead() < before + 100 && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(waiting->rows_ahead(), before + 100);
  EXPECT_EQ(alone->rows_ahead(), alone_before);
}

}  // namespace
}  // namespace hctr::test
