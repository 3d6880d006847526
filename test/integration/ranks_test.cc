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
#include "support/distance.h"
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

/// More weights than one bucket of gradients holds: those of fc1b are summed while BatchNorm, where there is one, and fc1 are still to come.
std::string with_large_layers(const std::string& config) {
  const std::string wide = with_change(with_change(config, R"("num_output": 16)", R"("num_output": 1100)"), R"("bottom": "relu1", "top": "dropout1")",
                                       R"("bottom": "relu1b", "top": "dropout1")");
  return with_change(wide, R"({"name": "dropout1")", R"({"type": "InnerProduct", "bottom": "relu1", "top": "fc1b", "fc_param": {"num_output": 1100}},
    {"type": "ReLU", "bottom": "fc1b", "top": "relu1b"}, {"name": "dropout1")");
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
    std::string statistics, marks[2];
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
        if (file.starts_with("final_" + std::to_string(e) + "_sparse")) {
          if (file.ends_with(".marks")) out.marks[e] = bytes;
          else read_rows(bytes, e == 1, e == 1 ? deep_dim_ : 1, out.rows[e]);
        }
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

  /// Losses to `of_losses`, weights and rows to `tolerance` of their size.
  static void expect_same(const Result& one, const Result& many, double tolerance, double of_losses = 1e-6, double of_metrics = 1e-4) {
    ASSERT_EQ(many.losses.size(), one.losses.size());
    for (size_t i = 0; i < one.losses.size(); ++i) EXPECT_NEAR(many.losses[i] / one.losses[i], 1, of_losses) << "step " << i;
    ASSERT_EQ(many.metrics.size(), one.metrics.size());
    for (size_t i = 0; i < one.metrics.size(); ++i) EXPECT_NEAR(many.metrics[i] / one.metrics[i], 1, of_metrics) << "evaluation, number " << i;
    EXPECT_LT(distance_of(one.dense, many.dense), tolerance) << "dense weights";
    for (size_t e = 0; e < 2; ++e) {
      std::vector<float> a, b;
      ASSERT_EQ(one.rows[e].size(), many.rows[e].size()) << "embedding " << e;
      for (const auto& [identity, vector] : one.rows[e]) {
        const auto found = many.rows[e].find(identity);
        ASSERT_TRUE(found != many.rows[e].end()) << "key " << identity.second << " of slot " << identity.first;
        a.insert(a.end(), vector.begin(), vector.end());
        b.insert(b.end(), found->second.begin(), found->second.end());
      }
      EXPECT_LT(distance_of(a, b), tolerance) << "embedding " << e;
      EXPECT_EQ(many.marks[e], one.marks[e]) << "when and how often keys came, embedding " << e;
    }
  }

  /// Tables that keys must wait for, in batches that ranks do not divide, the last of which is short.
  std::string with_policies() const {
    std::string config = with_change(with_change(sgd(config_), "\"batchsize\": 128", "\"batchsize\": 127"), "\"max_iter\": 20", "\"num_epochs\": 1");
    config = with_change(config, "\"embedding_vec_size\": 1,", "\"embedding_vec_size\": 1, \"admit_probability\": 0.1,");
    return with_change(config, "\"embedding_vec_size\": 5,", "\"embedding_vec_size\": 5, \"min_count\": 5, \"expire_after\": 16,");
  }

  /// A config, and one for several ranks that must train the same model.
  struct Placed {
    std::string name, alone, many;
  };

  /// Rows that every rank has: the frequent ones found by the program, or all of both tables. And what the program plans.
  std::vector<Placed> placements(const std::string& config) const {
    const std::string deep = "\"bottom\": \"deep_data\", \"top\": \"deep_emb\",", wide = "\"bottom\": \"wide_data\", \"top\": \"wide_emb\",";
    const auto everywhere = [&](const std::string& to, const std::string& word) {
      const std::string said = "\"placement\": \"" + word + "\",";
      return with_change(with_change(to, deep, deep + said), wide, wide + said);
    };
    const std::string sizes = R"("index": "direct", "slot_size_array": [)";
    std::string direct = with_change(config, "\"max_vocabulary_size_per_gpu\": 1000, \"embedding_vec_size\": 1", sizes + "300], \"embedding_vec_size\": 1");
    direct = with_change(direct, "\"max_vocabulary_size_per_gpu\": 1000, \"embedding_vec_size\": 5", sizes + "300, 300, 300], \"embedding_vec_size\": 5");
    const std::string hybrid =
        with_change(everywhere(config, "hybrid"), "\"embedding_vec_size\": 1,", R"("embedding_vec_size": 1, "num_iterations_statistics": 5,)");
    return {{"hybrid", config, hybrid}, {"data_parallel", direct, everywhere(direct, "data_parallel")}, {"auto", direct, everywhere(direct, "auto")}};
  }

  /// Training that only a signal ends.
  std::string endless() const {
    const std::string config = with_change(config_, "\"max_iter\": 20", "\"max_iter\": 100000000");
    return with_change(config, "\"eval_interval\": 10", "\"eval_interval\": 0");
  }

  TemporaryFolder folder_;
  std::string config_, device_ = "cpu";
  size_t deep_dim_ = 5;
};

TEST_F(RanksTest, GpusTrainTheModelOfOneGpu) {
  if (!kNcclBuild || find_gpus().count < 2) GTEST_SKIP() << "needs two GPUs and NCCL";
  device_ = "cuda";
  const std::string odd = with_change(sgd(config_), "\"batchsize\": 128", "\"batchsize\": 127");
  const std::string large = with_change(with_large_layers(sgd(config_)), "\"learning_rate\": 0.3", "\"learning_rate\": 0.01");
  const std::string two_bytes = with_change(sgd(config_), "\"seed\": 7", "\"seed\": 7, \"exchange_precision\": \"fp16\"");
  const Result wide = train(sgd(config_), {"[0]"}, "one");
  expect_same(wide, train(two_bytes, {"[0, 1]"}), 1e-3, 1e-3, 1e-3);
  for (const std::string& config : {config_, sgd(config_), with_batch_norm(sgd(config_)), odd, large, with_batch_norm(large), with_policies()}) {
    const Result one = train(config, {"[0]"}, "one");
    expect_same(one, train(config, {"[0, 1]"}), 2e-5, 2e-5);
    if (why_no_mpi().empty()) expect_same(one, train(config, {"[[0], [1]]", 2}), 2e-5, 2e-5);
    const Result unrecorded = train(with_change(config, "\"seed\": 7", "\"seed\": 7, \"cuda_graph\": false"), {"[0, 1]"});
    expect_same(one, unrecorded, 2e-5, 2e-5);
  }
  for (const Placed& placed : placements(sgd(config_))) {
    SCOPED_TRACE(placed.name);
    const Result one = train(placed.alone, {"[0]"}, "one");
    expect_same(one, train(placed.many, {"[0, 1]"}), 2e-5, 2e-5);
    expect_same(one, train(with_change(placed.many, "\"seed\": 7", "\"seed\": 7, \"cuda_graph\": false"), {"[0, 1]"}), 2e-5, 2e-5);
    if (why_no_mpi().empty()) expect_same(one, train(placed.many, {"[[0], [1]]", 2}), 2e-5, 2e-5);
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
  for (const bool adam : {false, true})
    for (const Placed& placed : placements(adam ? config_ : sgd(config_))) {
      const Result one = train(placed.alone, {"[0]"}, "one");
      for (const Ranks& ranks : {kThreads[0], kThreads[1], kThreads[2], kProcesses[0], kProcesses[3]}) {
        if (ranks.processes > 1 && (adam || !why_no_mpi().empty())) continue;
        SCOPED_TRACE(placed.name + (adam ? ", Adam on " : ", SGD on ") + ranks.gpu);
        expect_same(one, train(placed.many, ranks), adam ? 1e-5 : 1e-6);
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

TEST_F(RanksTest, LargeLayersAreSummedInBuckets) {
  const std::string large = with_change(with_large_layers(sgd(config_)), "\"learning_rate\": 0.3", "\"learning_rate\": 0.01");
  for (const std::string& config : {large, with_batch_norm(large)}) expect_same(train(config, {"[0]"}, "one"), train(config, {"[0, 1, 2]"}), 5e-6);
}

TEST_F(RanksTest, KeysAreLetInAndExpireAsOnOneRank) {
  const Result one = train(with_policies(), {"[0]"}, "one"), open = train(sgd(config_), {"[0]"}, "open");
  for (size_t e = 0; e < 2; ++e) EXPECT_LT(one.rows[e].size(), open.rows[e].size() * 9 / 10) << "the policies let everything in";
  for (const Ranks& ranks : {kThreads[0], kThreads[1], kThreads[2], kProcesses[3]}) {
    if (ranks.processes > 1 && !why_no_mpi().empty()) continue;
    SCOPED_TRACE(ranks.gpu);
    expect_same(one, train(with_policies(), ranks), 2e-6);
    const auto counts = [&](const char* run) { return Json::read_file(folder_ / run / "summary.json").find("tables")->text(); };
    EXPECT_EQ(counts("many-run"), counts("one-run"));
  }
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

TEST_F(RanksTest, VectorsMayTravelInTwoBytes) {
  const auto in = [&](const std::string& type) { return with_change(sgd(config_), "\"seed\": 7", "\"seed\": 7, \"exchange_precision\": \"" + type + "\""); };
  const Result one = train(sgd(config_), {"[0]"}, "one"), wide = train(sgd(config_), {"[0, 1, 2]"}, "wide");
  EXPECT_EQ(train(in("fp16"), {"[0]"}).losses, one.losses) << "a rank that is alone sends nothing";
  const Result same = train(in("fp32"), {"[0, 1, 2]"});
  EXPECT_EQ(same.losses, wide.losses);
  EXPECT_EQ(same.dense, wide.dense);
  for (const auto& [type, tolerance] : {std::pair{"fp16", 1e-3}, {"bf16", 1e-2}})
    for (const Ranks& ranks : kThreads) {
      SCOPED_TRACE(std::string(type) + " on " + ranks.gpu);
      const Result many = train(in(type), ranks);
      expect_same(one, many, tolerance, tolerance, tolerance);
      EXPECT_NE(many.losses, one.losses);
      const Json summary = Json::read_file(folder_ / "many-run" / "summary.json");
      EXPECT_EQ(summary.find("loss_scale") != nullptr, std::string(type) == "fp16");
    }
  const std::string one_table =
      with_change(sgd(config_), "\"embedding_vec_size\": 1,", "\"embedding_vec_size\": 1, \"exchange_precision\": \"bf16\",");
  EXPECT_NE(train(one_table, {"[0, 1, 2]"}).losses, wide.losses);
}

TEST_F(RanksTest, AnOverflowOnTheWayIsSkippedByAllRanks) {
  // Gradients times the first loss scale, 65536, leave fp16; activations are fp32 and would not.
  std::string config = with_change(sgd(config_), "\"seed\": 7", "\"seed\": 7, \"exchange_precision\": \"fp16\"");
  config = with_change(with_change(config, "\"lambda\": 0.001", "\"lambda\": 0.001, \"loss_weight\": 20000"), "\"learning_rate\": 0.3",
                       "\"learning_rate\": 0.000015");
  const Result one = train(config, {"[0]"}, "one"), many = train(config, {"[0, 1]"});
  EXPECT_EQ(Json::read_file(folder_ / "one-run" / "summary.json").find("skipped_steps"), nullptr) << "what stays on a rank is not scaled";
  const Json summary = Json::read_file(folder_ / "many-run" / "summary.json");
  ASSERT_NE(summary.find("skipped_steps"), nullptr);
  EXPECT_GT(*summary.find("skipped_steps")->integer(), 0);
  EXPECT_LT(*summary.find("skipped_steps")->integer(), 15);
  EXPECT_NEAR(many.losses[0] / one.losses[0], 1, 1e-3);
  for (const double loss : many.losses) EXPECT_TRUE(std::isfinite(loss));
  EXPECT_LT(many.losses.back(), many.losses.front());
}

TEST_F(RanksTest, AModelGoesOnOnAnotherNumberOfRanks) {
  train(sgd(config_), {"[0, 1, 2]"}, "first");
  const std::string next = with_change(sgd(config_), "\"seed\": 7", R"("seed": 8, "dense_model_file": "first/_dense_20.model",
    "sparse_model_file": ["first/0_sparse_20.model", "first/1_sparse_20.model"])");
  const Result one = train(next, {"[0]"}, "one");
  for (const Ranks& ranks : {kThreads[0], kThreads[2]}) expect_same(one, train(next, ranks), 1e-6);
}

/// A config whose rows of "deep_emb" can be cut into two, and a file with a plan that does everything at once: all of one table on the last rank;
/// pieces of two slots, and one whole, spread or on a rank, in the other.
class PlannedRanks : public RanksTest {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    deep_dim_ = 8;
    config_ = with_change(with_change(sgd(config_), "\"embedding_vec_size\": 5", "\"embedding_vec_size\": 8"), "\"leading_dim\": 15", "\"leading_dim\": 24");
  }
  std::string planned(const std::string& config, int ranks, const std::string& file = "mixed.json") {
    const int last = ranks - 1;
    write_file(folder_ / file, cat(R"({"schema": 1, "ranks": )", ranks, R"(, "tables": [{"name": "wide_emb", "pieces": 1, "owners": [)", last,
                                   R"(]}, {"name": "deep_emb", "pieces": 2, "owners": [0, )", last, R"(, "all", 0, )", last, ", ", last, "]}]}"));
    return with_change(config, "\"seed\": 7", "\"seed\": 7, \"placement_file\": \"" + file + "\"");
  }
};

TEST_F(PlannedRanks, AMixtureOfPlacementsTrainsTheModelOfOneRank) {
  for (const char* combiner : {"\"sum\"", "\"mean\"", "\"none\""}) {
    const std::string eight = "\"embedding_vec_size\": 8, \"combiner\": ";
    std::string config = with_change(config_, eight + "1", eight + combiner);
    if (combiner == std::string("\"none\"")) config = with_change(config, "\"leading_dim\": 24", "\"leading_dim\": 48");
    const Result one = train(config, {"[0]"}, "one");
    for (size_t r = 0; r < 3; ++r) {
      SCOPED_TRACE(combiner + std::string(" on ") + kThreads[r].gpu);
      expect_same(one, train(planned(config, static_cast<int>(r) + 2), kThreads[r]), 1e-6);
    }
  }
}

TEST_F(PlannedRanks, WhatTheProgramPlansTrainsTheModelOfOneRankAndCanBeGivenBack) {
  const Result one = train(config_, {"[0]"}, "one");
  EXPECT_FALSE(fs::exists(folder_ / "one-run" / "plan.json"));
  const std::string config = with_change(config_, "\"seed\": 7", "\"seed\": 7, \"placement\": \"auto\"");
  const Outcome outcome = start(config, kThreads[1], "auto");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("Plan of embedding rows (all-to-all "), std::string::npos) << outcome.err;
  const Result planned_run = result("auto");
  expect_same(one, planned_run, 1e-6);
  const Json plan = Json::read_file(folder_ / "auto-run" / "plan.json");
  EXPECT_EQ(*plan.find("schema")->integer(), 1);
  EXPECT_EQ(plan.find("tables")->array()->size(), 2u);
  fs::copy_file(folder_ / "auto-run" / "plan.json", folder_ / "given.json");
  const Result again = train(with_change(config, "\"seed\": 7", "\"seed\": 7, \"placement_file\": \"given.json\""), kThreads[1], "again");
  EXPECT_EQ(again.losses, planned_run.losses);
  for (size_t e = 0; e < 2; ++e) EXPECT_EQ(again.rows[e], planned_run.rows[e]);
}

TEST_F(PlannedRanks, AModelGoesOnUnderAnotherPlan) {
  train(planned(config_, 3), kThreads[1], "first");
  const std::string next = with_change(config_, "\"seed\": 7", R"("seed": 7, "dense_model_file": "first/_dense_20.model",
    "sparse_model_file": ["first/0_sparse_20.model", "first/1_sparse_20.model"])");
  const Result one = train(next, {"[0]"}, "one");
  expect_same(one, train(next, kThreads[0]), 1e-6);
  expect_same(one, train(planned(next, 4), kThreads[2]), 1e-6);
}

TEST_F(PlannedRanks, APlanThatDoesNotFitIsRefused) {
  const Outcome outcome = start(planned(config_, 3), kThreads[0], "unfit");
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_NE(outcome.err.find("the plan 'mixed.json' is for 3 ranks, and this is a run on 2"), std::string::npos) << outcome.err;
  write_file(folder_ / "checked.json", with_change(planned(config_, 3), "\"gpu\": [0]", "\"gpu\": [0, 1, 2]"));
  const Outcome check = run_program("huge_ctr", {"--check", "checked.json"}, folder_.path());
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_NE(check.out.find("Plan of embedding rows of 'mixed.json'"), std::string::npos) << check.out;
  EXPECT_NE(check.out.find("columns of "), std::string::npos) << check.out;
}

TEST_F(RanksTest, AFullTableOfOneRankEndsTheRunWithItsNameAndTheModelSaved) {
  // Three slots of 300 keys: of two ranks one has two slots. A batch alone fits.
  for (const auto& [ranks, limit] : {std::pair{kThreads[0], "420"}, {kThreads[1], "220"}, {kProcesses[0], "420"}, {kProcesses[1], "220"}}) {
    if (ranks.processes > 1 && !why_no_mpi().empty()) continue;
    SCOPED_TRACE(ranks.gpu);
    const std::string config = with_change(config_, "\"max_vocabulary_size_per_gpu\": 1000, \"embedding_vec_size\": 5",
                                           std::string("\"max_vocabulary_size_per_gpu\": ") + limit + ", \"grow\": false, \"embedding_vec_size\": 5");
    fs::remove_all(folder_ / "full");
    const Outcome outcome = start(config, ranks, "full");
    EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
    for (const char* piece : {"table 'deep_emb' on rank ", " rows that \"max_vocabulary_size_per_gpu\" allows", "while training on rank ",
                              " is saved as full/_dense_"})
      EXPECT_NE(outcome.err.find(piece), std::string::npos) << "no \"" << piece << "\" in " << outcome.err;
    const std::string saved = "; iteration ";
    const std::string iteration = std::to_string(std::atoi(outcome.err.c_str() + outcome.err.find(saved) + saved.size()));
    ASSERT_TRUE(fs::exists(folder_ / "full" / ("_dense_" + iteration + ".model"))) << outcome.err;
    // What is saved is the model of the last finished step, on all ranks.
    fs::remove_all(folder_ / "whole");
    const Outcome whole = start(with_change(config_, "\"max_iter\": 20", "\"max_iter\": " + iteration), ranks, "whole");
    EXPECT_EQ(whole.exit_code, 0) << whole.err;
    for (const std::string& file : {"_dense_" + iteration + ".model", "0_sparse_" + iteration + ".model", "1_sparse_" + iteration + ".model"})
      EXPECT_EQ(read_file(folder_ / "full" / file), read_file(folder_ / "whole" / file)) << file;
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
