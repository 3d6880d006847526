// The program on several ranks, as threads of one process and as processes joined by MPI: the same model as on one rank, and an end
// with a reason when a rank fails.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>

#include "comm/host_comm.h"
#include "support/communicator_suite.h"
#include "support/devices.h"
#include "support/program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

/// How the ranks of a run are spread.
struct Ranks {
  std::string gpu;    // of the config
  int processes = 1;  // more: under mpirun
};
const Ranks kThreads[] = {{"[0, 1]"}, {"[0, 1, 2]"}, {"[0, 1, 2, 3]"}};
const Ranks kProcesses[] = {{"[[0], [0]]", 2}, {"[[0], [0], [0]]", 3}, {"[[0], [0], [0], [0]]", 4}, {"[[0, 1], [0]]", 2}};

std::string sgd(std::string config) {
  const size_t begin = config.find("\"optimizer\":"), end = config.find("\"layers\":");
  return config.replace(begin, end - begin, R"("optimizer": {"type": "SGD", "update_type": "Local", "sgd_hparam": {"learning_rate": 0.3}}, )");
}

std::string with_batch_norm(const std::string& config) {
  return with_change(with_change(config, R"("bottom": "fc1", "top": "relu1")", R"("bottom": "bn1", "top": "relu1")"), R"({"name": "relu1")",
                     R"({"type": "BatchNorm", "bottom": "fc1", "top": "bn1", "bn_param": {"factor": 0.1, "eps": 0.001}}, {"name": "relu1")");
}

class RanksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    config_ = with_change(with_change(small_config(), "\"display\": 20", "\"display\": 1"), "\"max_iter\": 60", "\"max_iter\": 20");
    config_ = with_change(config_, "\"eval_interval\": 30", "\"eval_interval\": 10");
    write_file(folder_ / "data.json", config_);
    make_data(folder_.path(), "data.json", 3000, 500, {"--vocabulary", "300"});
  }

  struct Result {
    std::vector<double> losses, metrics;
    std::vector<float> dense;
    std::map<std::pair<uint64_t, int64_t>, std::vector<float>> rows[2];
    std::string statistics;
  };

  Outcome start(const std::string& config, const Ranks& ranks, const std::string& name) {
    write_file(folder_ / (name + ".json"), with_change(with_change(config, "\"gpu\": [0]", "\"gpu\": " + ranks.gpu), "\"out/\"", "\"" + name + "/\""));
    std::vector<std::string> arguments = {"--train", name + ".json", "--run-dir", name + "-run", "--device", device_};
    return ranks.processes == 1 ? run_program("huge_ctr", arguments, folder_.path())
                                : run_under_mpi(ranks.processes, "huge_ctr", arguments, folder_.path());
  }

  Result train(const std::string& config, const Ranks& ranks, const std::string& name = "many") {
    fs::remove_all(folder_ / name);
    const Outcome outcome = start(config, ranks, name);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return result(name);
  }

  Result result(const std::string& name) const {
    Result out;
    std::istringstream lines(read_file(folder_ / (name + "-run") / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const Json json = Json::parse(line, "metrics.jsonl");
      if (*json.find("kind")->string() == "train") out.losses.push_back(json.find("loss")->number());
      if (*json.find("kind")->string() == "eval")
        for (const char* metric : {"AUC", "AverageLoss", "samples"}) out.metrics.push_back(json.find(metric)->number());
    }
    for (const auto& entry : fs::directory_iterator(folder_ / (name + "-run"))) {
      const std::string file = entry.path().filename(), bytes = read_file(entry.path());
      if (file.ends_with(".ntp.json")) out.statistics = bytes;
      else if (file.starts_with("final__dense") && file.ends_with(".model")) {
        out.dense.resize(bytes.size() / sizeof(float));
        std::memcpy(out.dense.data(), bytes.data(), bytes.size());
      }
      for (size_t e = 0; e < 2; ++e)
        if (file.starts_with("final_" + std::to_string(e) + "_sparse")) read_rows(bytes, e == 1, e == 1 ? 5 : 1, out.rows[e]);
    }
    return out;
  }

  static void read_rows(const std::string& bytes, bool by_slot, size_t dim, std::map<std::pair<uint64_t, int64_t>, std::vector<float>>& rows) {
    const size_t head = by_slot ? 16 : 8;
    for (size_t at = 0; at < bytes.size(); at += head + dim * sizeof(float)) {
      int64_t key = 0;
      uint64_t slot = 0;
      std::vector<float> vector(dim);
      std::memcpy(&key, bytes.data() + at, 8);
      if (by_slot) std::memcpy(&slot, bytes.data() + at + 8, 8);
      std::memcpy(vector.data(), bytes.data() + at + head, dim * sizeof(float));
      EXPECT_TRUE(rows.emplace(std::pair(slot, key), vector).second) << "key " << key << " twice";
    }
  }

  static double distance(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    double difference = 0, size = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
      size += std::pow(static_cast<double>(a[i]), 2);
    }
    return std::sqrt(difference / size);
  }

  /// Losses to `of_losses`, weights and rows to `tolerance` of their size.
  static void expect_same(const Result& one, const Result& many, double tolerance, double of_losses = 1e-6) {
    ASSERT_EQ(many.losses.size(), one.losses.size());
    for (size_t i = 0; i < one.losses.size(); ++i) EXPECT_NEAR(many.losses[i] / one.losses[i], 1, of_losses) << "step " << i;
    ASSERT_EQ(many.metrics.size(), one.metrics.size());
    for (size_t i = 0; i < one.metrics.size(); ++i) EXPECT_NEAR(many.metrics[i] / one.metrics[i], 1, 1e-4) << "evaluation, number " << i;
    EXPECT_LT(distance(one.dense, many.dense), tolerance) << "dense weights";
    for (size_t e = 0; e < 2; ++e) {
      std::vector<float> a, b;
      ASSERT_EQ(one.rows[e].size(), many.rows[e].size()) << "embedding " << e;
      for (const auto& [identity, vector] : one.rows[e]) {
        const auto found = many.rows[e].find(identity);
        ASSERT_TRUE(found != many.rows[e].end()) << "key " << identity.second << " of slot " << identity.first;
        a.insert(a.end(), vector.begin(), vector.end());
        b.insert(b.end(), found->second.begin(), found->second.end());
      }
      EXPECT_LT(distance(a, b), tolerance) << "embedding " << e;
    }
  }

  /// Training that only a signal ends.
  std::string endless() const {
    const std::string config = with_change(config_, "\"max_iter\": 20", "\"max_iter\": 100000000");
    return with_change(config, "\"eval_interval\": 10", "\"eval_interval\": 0");
  }

  TemporaryFolder folder_;
  std::string config_, device_ = "cpu";
};

TEST_F(RanksTest, GpusTrainTheModelOfOneGpu) {
  if (!kNcclBuild || find_gpus().count < 2) GTEST_SKIP() << "needs two GPUs and NCCL";
  device_ = "cuda";
  const std::string odd = with_change(sgd(config_), "\"batchsize\": 128", "\"batchsize\": 127");
  for (const std::string& config : {config_, sgd(config_), with_batch_norm(sgd(config_)), odd}) {
    const Result one = train(config, {"[0]"}, "one");
    expect_same(one, train(config, {"[0, 1]"}), 2e-5, 2e-5);
    if (why_no_mpi().empty()) expect_same(one, train(config, {"[[0], [1]]", 2}), 2e-5, 2e-5);
    const Result unrecorded = train(with_change(config, "\"seed\": 7", "\"seed\": 7, \"cuda_graph\": false"), {"[0, 1]"});
    expect_same(one, unrecorded, 2e-5, 2e-5);
  }
}

TEST_F(RanksTest, ThreadsTrainTheModelOfOneRank) {
  for (const bool adam : {false, true}) {
    const std::string config = adam ? config_ : sgd(config_);
    const Result one = train(config, {"[0]"}, "one");
    ASSERT_EQ(one.losses.size(), 20u);
    for (const Ranks& ranks : kThreads) {
      SCOPED_TRACE((adam ? "Adam on " : "SGD on ") + ranks.gpu);
      expect_same(one, train(config, ranks), adam ? 1e-5 : 1e-6);
    }
  }
}

TEST_F(RanksTest, FrequentRowsAndWholeTablesOnEveryRankTrainTheModelOfOneRank) {
  const std::string deep = "\"bottom\": \"deep_data\", \"top\": \"deep_emb\",", wide = "\"bottom\": \"wide_data\", \"top\": \"wide_emb\",";
  const std::string sizes = R"("index": "direct", "slot_size_array": [)";
  for (const bool adam : {false, true}) {
    const std::string config = adam ? config_ : sgd(config_);
    std::string direct = with_change(config, "\"max_vocabulary_size_per_gpu\": 1000, \"embedding_vec_size\": 1", sizes + "300], \"embedding_vec_size\": 1");
    direct = with_change(direct, "\"max_vocabulary_size_per_gpu\": 1000, \"embedding_vec_size\": 5", sizes + "300, 300, 300], \"embedding_vec_size\": 5");
    std::string hybrid = with_change(config, deep, deep + R"("placement": "hybrid",)");
    hybrid = with_change(with_change(hybrid, wide, wide + R"("placement": "hybrid",)"),
                         "\"embedding_vec_size\": 1,", R"("embedding_vec_size": 1, "num_iterations_statistics": 5,)");
    const std::string all = R"("placement": "data_parallel",)", whole = with_change(with_change(direct, deep, deep + all), wide, wide + all);
    for (const auto& [name, alone, placed] : {std::tuple("hybrid", config, hybrid), {"data_parallel", direct, whole}}) {
      const Result one = train(alone, {"[0]"}, "one");
      for (const Ranks& ranks : kThreads) {
        SCOPED_TRACE(std::string(name) + (adam ? ", Adam on " : ", SGD on ") + ranks.gpu);
        expect_same(one, train(placed, ranks), adam ? 1e-5 : 1e-6);
      }
    }
  }
}

TEST_F(RanksTest, ProcessesTrainTheModelOfOneRank) {
  HCTR_SKIP_WITHOUT_MPI();
  for (const bool adam : {false, true}) {
    const std::string config = adam ? config_ : sgd(config_);
    const Result one = train(config, {"[0]"}, "one");
    for (const Ranks& ranks : kProcesses) {
      SCOPED_TRACE((adam ? "Adam on " : "SGD on ") + ranks.gpu);
      expect_same(one, train(config, ranks), adam ? 1e-5 : 1e-6);
    }
  }
}

TEST_F(RanksTest, ThreadsAndProcessesGiveEqualFiles) {
  HCTR_SKIP_WITHOUT_MPI();
  const Result threads = train(config_, {"[0, 1, 2]"}, "threads");
  for (const Ranks& ranks : {Ranks{"[[0], [0], [0]]", 3}, Ranks{"[[0, 1], [0]]", 2}}) {
    const Result processes = train(config_, ranks, "processes");
    EXPECT_EQ(processes.losses, threads.losses);
    EXPECT_EQ(processes.dense, threads.dense);
    for (size_t e = 0; e < 2; ++e) EXPECT_EQ(processes.rows[e], threads.rows[e]);
  }
}

TEST_F(RanksTest, BatchesThatRanksDoNotDivideAndAShortLastOne) {
  std::string config = with_change(with_change(sgd(config_), "\"batchsize\": 128", "\"batchsize\": 127"), "\"max_iter\": 20", "\"num_epochs\": 2");
  config = with_change(config, "\"eval_metrics\"", "\"batchsize_eval\": 33, \"eval_metrics\"");
  const Result one = train(config, {"[0]"}, "one");
  ASSERT_EQ(one.losses.size(), 48u);  // 23 full batches and one of 79, twice
  for (const Ranks& ranks : kThreads) {
    SCOPED_TRACE(ranks.gpu);
    expect_same(one, train(config, ranks), 2e-6);
  }
}

TEST_F(RanksTest, ALastBatchWithFewerSamplesThanRanks) {
  const std::string config = with_change(with_change(sgd(config_), "\"batchsize\": 128", "\"batchsize\": 2999"), "\"max_iter\": 20", "\"num_epochs\": 1");
  const Result one = train(config, {"[0]"}, "one");
  ASSERT_EQ(one.losses.size(), 2u);  // the second is of one sample, and all but one rank have none
  expect_same(one, train(config, {"[0, 1, 2, 3]"}), 1e-6);
}

TEST_F(RanksTest, BatchNormTakesTheWholeBatch) {
  const std::string config = with_batch_norm(sgd(config_));
  const Result one = train(config, {"[0]"}, "one");
  for (const Ranks& ranks : kThreads) {
    SCOPED_TRACE(ranks.gpu);
    const Result many = train(config, ranks);
    expect_same(one, many, 5e-6);
    EXPECT_FALSE(many.statistics.empty());
  }
  const std::string apart = with_change(config, "\"seed\": 7", "\"seed\": 7, \"compatibility\": [\"batch_norm_per_gpu\"]");
  EXPECT_EQ(train(apart, {"[0]"}).losses, one.losses);
  EXPECT_GT(std::abs(train(apart, {"[0, 1]"}).losses.back() / one.losses.back() - 1), 1e-5);
}

TEST_F(RanksTest, OverflowsAreSkippedByAllRanksTogether) {
  const std::string config = with_change(config_, "\"seed\": 7", "\"seed\": 7, \"mixed_precision\": true");
  const Result one = train(config, {"[0]"}, "one"), many = train(config, {"[0, 1]"});
  ASSERT_EQ(many.losses.size(), one.losses.size());
  for (size_t i = 0; i < one.losses.size(); ++i) EXPECT_NEAR(many.losses[i] / one.losses[i], 1, 5e-3) << "step " << i;
  const auto skipped = [&](const char* run) { return *Json::read_file(folder_ / run / "summary.json").find("skipped_steps")->integer(); };
  EXPECT_EQ(skipped("many-run"), skipped("one-run"));
}

TEST_F(RanksTest, AModelGoesOnOnAnotherNumberOfRanks) {
  train(sgd(config_), {"[0, 1, 2]"}, "first");
  const std::string next = with_change(sgd(config_), "\"seed\": 7", R"("seed": 8, "dense_model_file": "first/_dense_20.model",
    "sparse_model_file": ["first/0_sparse_20.model", "first/1_sparse_20.model"])");
  const Result one = train(next, {"[0]"}, "one");
  for (const Ranks& ranks : {kThreads[0], kThreads[2]}) expect_same(one, train(next, ranks), 1e-6);
}

TEST_F(RanksTest, AFullTableOfOneRankEndsTheRunWithItsName) {
  const std::string config = with_change(config_, "\"max_vocabulary_size_per_gpu\": 1000, \"embedding_vec_size\": 5",
                                         "\"max_vocabulary_size_per_gpu\": 150, \"grow\": false, \"embedding_vec_size\": 5");
  for (const Ranks& ranks : {kThreads[1], kProcesses[1]}) {
    if (ranks.processes > 1 && !why_no_mpi().empty()) continue;
    const Outcome outcome = start(config, ranks, "full");
    EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
    for (const char* piece : {"table 'deep_emb' on rank ", "max_vocabulary_size_per_gpu", "while training on rank "})
      EXPECT_NE(outcome.err.find(piece), std::string::npos) << "no \"" << piece << "\" in " << outcome.err;
  }
}

TEST_F(RanksTest, ASignalStopsAllRanksAfterTheSameStepAndSavesTheModel) {
  write_file(folder_ / "endless.json", with_change(endless(), "\"gpu\": [0]", "\"gpu\": [0, 1, 2]"));
  const Outcome outcome =
      run_and_signal("huge_ctr", {"--train", "endless.json", "--run-dir", "endless", "--device", "cpu"}, folder_.path(), "Iter: 20 ", SIGINT);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  const Json summary = Json::read_file(folder_ / "endless" / "summary.json");
  EXPECT_EQ(summary.find("model_files")->array()->size(), 3u);
  EXPECT_GE(*summary.find("iterations")->integer(), 20);
}

TEST_F(RanksTest, ListsThatDoNotFitTheProcessesAreExplained) {
  HCTR_SKIP_WITHOUT_MPI();
  const Outcome outcome = start(config_, {"[0, 1, 2]", 2}, "lists");
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_NE(outcome.err.find("/solver/gpu: names the GPUs of 1 process and 2 were started"), std::string::npos) << outcome.err;
}

/// Signals rank 1 of two processes in the middle of training; how long the job then takes to end is the caller's to judge.
class FailingRank : public RanksTest {
 protected:
  Outcome end_of(int signal_number) {
    write_file(folder_ / "endless.json", with_change(endless(), "\"gpu\": [0]", "\"gpu\": [[0], [0]]"));
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = run_under_mpi_and_signal(
        2, "huge_ctr", {"--train", "endless.json", "--run-dir", "endless", "--device", "cpu", "--comm-timeout", "5"}, folder_.path(), "Iter: 20 ", 1,
        signal_number);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)) << outcome.err;
    EXPECT_NE(outcome.exit_code, 0);
    return outcome;
  }
};

TEST_F(FailingRank, KilledEndsTheJob) {
  HCTR_SKIP_WITHOUT_MPI();
  const Outcome outcome = end_of(SIGKILL);
  EXPECT_NE(outcome.err.find("exited on signal 9"), std::string::npos) << outcome.out << outcome.err;  // mpirun's words
}

TEST_F(FailingRank, StalledIsNamed) {
  HCTR_SKIP_WITHOUT_MPI();
  const Outcome outcome = end_of(SIGSTOP);
  EXPECT_NE(outcome.err.find("rank 1 has not answered for 5 s"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.exit_code, 7) << outcome.err;
}

/// The suite of all communicators, run by this program's own processes under mpirun.
TEST(UnderMpi, TheCommunicatorSuite) {
  const auto others = started_processes(std::chrono::seconds(60));
  if (!others) GTEST_SKIP() << "runs under mpirun, which MpiTest does";
  Runtime runtime(kCpu, {.threads = 1});
  RankGroup group(1, others.get(), std::chrono::seconds(60));
  HostComm comm(group, group.seats().first);
  EXPECT_EQ(comm.size(), others->count());
  check_communicator(comm, runtime);
}

TEST(MpiTest, TheCommunicatorSuiteHoldsForProcesses) {
  HCTR_SKIP_WITHOUT_MPI();
  const TemporaryFolder folder;
  for (const int processes : {2, 3, 4}) {
    const Outcome outcome = run_under_mpi(processes, "integration_tests", {"--gtest_filter=UnderMpi.*"}, folder.path());
    EXPECT_EQ(outcome.exit_code, 0) << processes << " processes:\n" << outcome.out << outcome.err;
    size_t passed = 0;
    for (size_t at = 0; (at = outcome.out.find("1 passed, 0 failed", at)) != std::string::npos; ++at) ++passed;
    EXPECT_EQ(passed, static_cast<size_t>(processes)) << outcome.out;
  }
}

}  // namespace
}  // namespace hctr::test
