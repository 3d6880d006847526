// The program on several ranks, as threads of one process and as MPI processes, trains the same model as on a single
// rank.
#include <gtest/gtest.h>

#include <cstdlib>

#include "ranks_fixture.h"

#include "core/comm/host_comm.h"
#include "program/program_surroundings.h"
#include "support/communicator_suite.h"

namespace hctr::test {
namespace {

using RanksOnGpus = OnGpus<RanksTest>;

TEST_P(RanksOnGpus, TrainTheModelOfOneGpu) {
  const std::string odd = with_change(sgd(config_), "\"batchsize\": 128", "\"batchsize\": 127");
  for (const std::string& config : {config_, with_dice(sgd(config_)), odd, with_many_buckets(), with_policies()}) {
    SCOPED_TRACE(config);
    expect_same(alone(config), train(config, GetParam()), 2e-5, 2e-5);
  }
  expect_same(alone(config_), train(unrecorded(config_), GetParam()), 2e-5, 2e-5);
}

TEST_P(RanksOnGpus, MayExchangeVectorsInTwoBytes) {
  const std::string two_bytes =
      with_change(sgd(config_), "\"seed\": 7", "\"seed\": 7, \"exchange_precision\": \"fp16\"");
  expect_same(alone(sgd(config_)), train(two_bytes, GetParam()), 1e-3, 1e-3, 1e-3);
  EXPECT_NE(Json::read_file(folder_ / "many-run" / "summary.json").find("loss_scale"), nullptr)
      << "else nothing travelled in fp16";
}

TEST_P(RanksOnGpus, WithLongVectorsTrainTheModelOfOneGpu) {
  const std::string config = with_long_vectors();
  expect_same(alone(config), train(config, GetParam()), 2e-5, 2e-5);
  expect_same(alone(config), train(unrecorded(config), GetParam()), 2e-5, 2e-5);
}

TEST_P(RanksOnGpus, ThatDoNotReachEachOthersMemoryTrainTheModelOfOneGpu) {
  const Result one = alone(sgd(config_));
  ::setenv("NCCL_P2P_DISABLE", "1", 1);  // the started program inherits this variable
  expect_same(one, train(sgd(config_), GetParam()), 2e-5, 2e-5);
  ::unsetenv("NCCL_P2P_DISABLE");
}

TEST_P(RanksOnGpus, WithRowsOnEveryOneTrainTheModelOfOneGpu) {
  for (const Placed& placed : placements(sgd(config_))) {
    SCOPED_TRACE(placed.name);
    expect_same(alone(placed.alone), train(placed.many, GetParam()), 2e-5, 2e-5);
    if (placed.name == "hybrid")
      expect_same(alone(placed.alone), train(unrecorded(placed.many), GetParam()), 2e-5, 2e-5);
  }
  // The all-reduces of replicated rows, gradient buckets and BatchNorm are interleaved.
  const Placed between = placements(with_many_buckets())[0];
  expect_same(alone(between.alone), train(between.many, GetParam()), 2e-5, 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Of, RanksOnGpus, ::testing::ValuesIn(kGpus), name_of);

TEST_F(RanksTest, ThreadsTrainTheModelOfOneRank) {
  for (const bool adam : {false, true}) {
    const std::string config = adam ? config_ : sgd(config_);
    const Result one = train(config, {"[0]"}, "one");
    ASSERT_EQ(one.losses.size(), 20u);
    for (const Ranks& ranks : kThreads) {
      if (kSanitized && same_code(ranks)) continue;
      SCOPED_TRACE((adam ? "Adam on " : "SGD on ") + ranks.gpu);
      expect_same(one, train(config, ranks), adam ? 1e-5 : 1e-6);
    }
  }
}

TEST_F(RanksTest, LongVectorsTrainTheModelOfOneRank) {
  const std::string config = with_long_vectors();
  const Result one = train(config, {"[0]"}, "one");
  for (const Ranks& ranks : {kThreads[0], kThreads[2]}) {
    SCOPED_TRACE(ranks.gpu);
    expect_same(one, train(config, ranks), 1e-6);
  }
}

TEST_F(RanksTest, FrequentRowsAndWholeTablesOnEveryRankTrainTheModelOfOneRank) {
  for (const bool adam : {false, true}) {
    if (kSanitized && adam) continue;  // sanitizers need one case per code path
    for (const Placed& placed : placements(adam ? config_ : sgd(config_))) {
      const Result one = train(placed.alone, {"[0]"}, "one");
      for (const Ranks& ranks : {kThreads[0], kThreads[1], kThreads[2], kProcesses[0], kProcesses[3]}) {
        if ((ranks.processes > 1 && (adam || !why_no_mpi().empty())) || (kSanitized && same_code(ranks))) continue;
        SCOPED_TRACE(placed.name + (adam ? ", Adam on " : ", SGD on ") + ranks.gpu);
        expect_same(one, train(placed.many, ranks), adam ? 1e-5 : 1e-6);
      }
    }
  }
  const Placed between = placements(with_few_steps(with_many_buckets()))[0];
  expect_same(train(between.alone, {"[0]"}, "one"), train(between.many, kThreads[1]), 5e-6);
}

TEST_F(RanksTest, ProcessesTrainTheModelOfOneRank) {
  HCTR_SKIP_WITHOUT_MPI();
  for (const bool adam : {false, true}) {
    if (kSanitized && adam) continue;  // sanitizers need one case per code path
    const std::string config = adam ? config_ : sgd(config_);
    const Result one = train(config, {"[0]"}, "one");
    for (const Ranks& ranks : kProcesses) {
      if (kSanitized && same_code(ranks)) continue;
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
  std::string config = with_change(with_change(sgd(config_), "\"batchsize\": 128", "\"batchsize\": 127"),
                                   "\"max_iter\": 20", "\"num_epochs\": 2");
  config = with_change(config, "\"eval_metrics\"", "\"batchsize_eval\": 33, \"eval_metrics\"");
  const Result one = train(config, {"[0]"}, "one");
  ASSERT_EQ(one.losses.size(), 48u);  // two epochs, each with 23 full batches and a batch of 79 samples
  for (const Ranks& ranks : kThreads) {
    if (kSanitized && same_code(ranks)) continue;
    SCOPED_TRACE(ranks.gpu);
    expect_same(one, train(config, ranks), 2e-6);
  }
}

TEST_F(RanksTest, ALastBatchWithFewerSamplesThanRanks) {
  const std::string config = with_change(with_change(sgd(config_), "\"batchsize\": 128", "\"batchsize\": 2999"),
                                         "\"max_iter\": 20", "\"num_epochs\": 1");
  const Result one = train(config, {"[0]"}, "one");
  ASSERT_EQ(one.losses.size(), 2u);  // the second batch has one sample, so three ranks have none
  expect_same(one, train(config, {"[0, 1, 2, 3]"}), 1e-6);
}

TEST_F(RanksTest, LargeLayersAreSummedInBuckets) {
  const std::string large =
      with_change(with_large_layers(sgd(config_)), "\"learning_rate\": 0.3", "\"learning_rate\": 0.01");
  for (const std::string& config : {with_few_steps(large), with_few_steps(with_many_buckets())})
    expect_same(train(config, {"[0]"}, "one"), train(config, {"[0, 1, 2]"}), 5e-6);
}

TEST_F(RanksTest, KeysAreLetInAndExpireAsOnOneRank) {
  const Result one = train(with_policies(), {"[0]"}, "one"), open = train(sgd(config_), {"[0]"}, "open");
  for (size_t e = 0; e < 2; ++e)
    EXPECT_LT(one.rows[e].size(), open.rows[e].size() * 9 / 10) << "the policies let everything in";
  for (const Ranks& ranks : {kThreads[0], kThreads[1], kThreads[2], kProcesses[3]}) {
    if ((ranks.processes > 1 && !why_no_mpi().empty()) || (kSanitized && same_code(ranks))) continue;
    SCOPED_TRACE(ranks.gpu);
    expect_same(one, train(with_policies(), ranks), 2e-6);
    const auto counts = [&](const char* run) {
      return Json::read_file(folder_ / run / "summary.json").find("tables")->text();
    };
    EXPECT_EQ(counts("many-run"), counts("one-run"));
  }
}

TEST_F(RanksTest, BatchNormTakesTheWholeBatch) {
  const std::string config = with_batch_norm(sgd(config_));
  const Result one = train(config, {"[0]"}, "one");
  for (const Ranks& ranks : kThreads) {
    if (kSanitized && same_code(ranks)) continue;
    SCOPED_TRACE(ranks.gpu);
    const Result many = train(config, ranks);
    expect_same(one, many, 5e-6);
    EXPECT_FALSE(many.statistics.empty());
  }
  expect_other_statistics_per_rank(config, one);
}

TEST_F(RanksTest, DiceTakesTheWholeBatch) {
  // Batches do not divide evenly among ranks. In the last evaluation batch only one rank has samples.
  std::string config = with_change(with_dice(sgd(config_)), "\"batchsize\": 128", "\"batchsize\": 142");
  config = with_change(with_change(config, "\"max_iter\": 20", "\"num_epochs\": 1"), "\"eval_metrics\"",
                       "\"batchsize_eval\": 499, \"eval_metrics\"");
  const Result one = train(config, {"[0]"}, "one");
  ASSERT_EQ(one.losses.size(), 22u);
  for (const Ranks& ranks : {kThreads[0], kThreads[1], kThreads[2], kProcesses[3]}) {
    if ((ranks.processes > 1 && !why_no_mpi().empty()) || (kSanitized && same_code(ranks))) continue;
    SCOPED_TRACE(ranks.gpu);
    expect_same(one, train(config, ranks), 5e-6);
  }
  expect_other_statistics_per_rank(config, one);
}

TEST_F(RanksTest, OverflowsOfTheEmbeddingsGradientsAloneAreSkipped) {
  const std::string config = with_large_interaction();
  const Result one = train(config, {"[0]"}, "one");
  const auto skipped = [&](const char* run) {
    return *Json::read_file(folder_ / run / "summary.json").find("skipped_steps")->integer();
  };
  EXPECT_GT(skipped("one-run"), 0);
  EXPECT_LT(skipped("one-run"), 20);
  for (const char* gpu : {"[0, 1]", "[0, 1, 2]"}) {
    const Result many = train(config, {gpu});
    EXPECT_EQ(skipped("many-run"), skipped("one-run")) << gpu;
    ASSERT_EQ(many.losses.size(), one.losses.size());
    for (size_t i = 0; i < one.losses.size(); ++i) EXPECT_NEAR(many.losses[i] / one.losses[i], 1, 5e-3) << "step " << i;
  }
}

TEST_F(RanksTest, OverflowsAreSkippedByAllRanksTogether) {
  const std::string config = with_change(config_, "\"seed\": 7", "\"seed\": 7, \"mixed_precision\": true");
  const Result one = train(config, {"[0]"}, "one"), many = train(config, {"[0, 1]"});
  ASSERT_EQ(many.losses.size(), one.losses.size());
  for (size_t i = 0; i < one.losses.size(); ++i) EXPECT_NEAR(many.losses[i] / one.losses[i], 1, 5e-3) << "step " << i;
  const auto skipped = [&](const char* run) {
    return *Json::read_file(folder_ / run / "summary.json").find("skipped_steps")->integer();
  };
  EXPECT_EQ(skipped("many-run"), skipped("one-run"));
}

TEST_F(RanksTest, Fp8HasTheScalesOfTheWholeBatch) {
  // Three ranks do not divide a batch of 128 evenly, so the last rank has a padding row, which must have no effect.
  const std::string config =
      with_change(config_, "\"seed\": 7", R"("seed": 7, "mixed_precision": "fp8", "fp8_least_width": 16)");
  const Result one = train(config, {"[0]"}, "one");
  for (const char* gpu : {"[0, 1]", "[0, 1, 2]"}) {
    const Result many = train(config, {gpu});
    ASSERT_EQ(many.losses.size(), one.losses.size());
    for (size_t i = 0; i < one.losses.size(); ++i)
      EXPECT_NEAR(many.losses[i] / one.losses[i], 1, 5e-3) << gpu << " step " << i;
  }
}

TEST_F(RanksTest, VectorsMayTravelInTwoBytes) {
  const auto in = [&](const std::string& type) {
    return with_change(sgd(config_), "\"seed\": 7", "\"seed\": 7, \"exchange_precision\": \"" + type + "\"");
  };
  const Result one = train(sgd(config_), {"[0]"}, "one"), wide = train(sgd(config_), {"[0, 1, 2]"}, "wide");
  EXPECT_EQ(train(in("fp16"), {"[0]"}).losses, one.losses) << "a rank that is alone sends nothing";
  const Result same = train(in("fp32"), {"[0, 1, 2]"});
  EXPECT_EQ(same.losses, wide.losses);
  EXPECT_EQ(same.dense, wide.dense);
  for (const auto& [type, tolerance] : {std::pair{"fp16", 1e-3}, {"bf16", 1e-2}})
    for (const Ranks& ranks : kThreads) {
      if (kSanitized && same_code(ranks)) continue;
      SCOPED_TRACE(std::string(type) + " on " + ranks.gpu);
      const Result many = train(in(type), ranks);
      expect_same(one, many, tolerance, tolerance, tolerance);
      EXPECT_NE(many.losses, one.losses);
      const Json summary = Json::read_file(folder_ / "many-run" / "summary.json");
      EXPECT_EQ(summary.find("loss_scale") != nullptr, std::string(type) == "fp16");
    }
  const std::string one_table = with_change(sgd(config_), "\"embedding_vec_size\": 1,",
                                            "\"embedding_vec_size\": 1, \"exchange_precision\": \"bf16\",");
  EXPECT_NE(train(one_table, {"[0, 1, 2]"}).losses, wide.losses);
}

TEST_F(RanksTest, AnOverflowOnTheWayIsSkippedByAllRanks) {
  // Gradients times the first loss scale, 65536, overflow fp16. Activations are fp32 and do not overflow.
  std::string config = with_change(sgd(config_), "\"seed\": 7", "\"seed\": 7, \"exchange_precision\": \"fp16\"");
  config = with_change(with_change(config, "\"lambda\": 0.001", "\"lambda\": 0.001, \"loss_weight\": 20000"),
                       "\"learning_rate\": 0.3", "\"learning_rate\": 0.000015");
  const Result one = train(config, {"[0]"}, "one"), many = train(config, {"[0, 1]"});
  EXPECT_EQ(Json::read_file(folder_ / "one-run" / "summary.json").find("skipped_steps"), nullptr)
      << "what stays on a rank is not scaled";
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
  const std::string next =
      with_change(sgd(config_), "\"seed\": 7", R"("seed": 8, "dense_model_file": "first/_dense_20.model",
    "sparse_model_file": ["first/0_sparse_20.model", "first/1_sparse_20.model"])");
  const Result one = train(next, {"[0]"}, "one");
  for (const Ranks& ranks : {kThreads[0], kThreads[2]}) expect_same(one, train(next, ranks), 1e-6);
}
/// Runs the test suite of all communicators under mpirun, in processes of this test program.
TEST(UnderMpi, TheCommunicatorSuite) {
  const auto others = started_processes({.step = std::chrono::seconds(60)}, program_surroundings());
  if (!others) GTEST_SKIP() << "runs under mpirun, which MpiTest does";
  Runtime runtime(kCpu, {.threads = 1});
  RankGroup group(1, others.get(), std::chrono::seconds(60));
  HostComm comm(group, group.local_ranks().first);
  EXPECT_EQ(comm.size(), others->count());
  check_communicator(comm, runtime, false);
}

TEST(MpiTest, TheCommunicatorSuiteHoldsForProcesses) {
  HCTR_SKIP_WITHOUT_MPI();
  for (const char* share : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"})
    ::unsetenv(share);  // otherwise GoogleTest in the child processes would run only a shard of the tests
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
