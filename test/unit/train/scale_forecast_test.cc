// The predicted step time on many GPUs equals a computation by hand, for a model with two slots.
#include "train/scale_forecast.h"

#include <gtest/gtest.h>

#include "support/message_of.h"
#include "train/known_gpus.h"
#include "train/step_forecast.h"
#include "train/step_work.h"
#include "unit/train/one_table.h"

namespace hctr::test {
namespace {

constexpr int64_t kSamples = 4096, kDim = 16, kParameters = 33;

/// A model with two slots, each with one distinct key per sample, and a layer of 32 inputs.
Config two_slots(const std::string& placement) {
  return one_table(4096, R"("type": "SGD", "sgd_hparam": {"learning_rate": 1})",
                   R"("type": "HybridSparseEmbedding", "placement": ")" + placement +
                       R"(", "sparse_embedding_hparam": {"embedding_vec_size": 16, "combiner": "sum"})");
}

ScaleForecast forecast(const std::string& cluster, const std::vector<MeasuredStep>& measured = {},
                       const std::string& placement = "localized") {
  return forecast_scale(two_slots(placement), cluster_from(cluster),
                        expected_ceilings(*find_known_gpu("H100"), DType::f32, false), 80e9, measured);
}

TEST(ScaleForecast, WhatLeavesAHostIsWhatTheOthersNeed) {
  // Half of the samples are on the other host. Each slot is owned by one of the hosts, and all keys are distinct.
  const double half = kSamples / 2.0, keys = 2 * half * 8 / 2, vectors = half * kDim * 4, sums = kParameters * 4;
  EXPECT_DOUBLE_EQ(forecast("hosts=2,gpus=1,network=10:5").bytes_between, keys + 2 * vectors + sums);
  // If slots are sharded by key, each host owns half of the rows of both slots, so the number of vectors is the same.
  EXPECT_DOUBLE_EQ(forecast("hosts=2,gpus=1,network=10:5", {}, "distributed").bytes_between, keys + 2 * vectors + sums);
  EXPECT_EQ(forecast("hosts=1,gpus=2").bytes_between, 0);
  // At 1 MB/s the vectors dominate. Their exchange takes the latency plus the time to transfer the vectors in one
  // direction.
  const ScaleForecast slow = forecast("hosts=2,gpus=1,network=0.001:5");
  EXPECT_NEAR(slow.vectors_between, vectors / 1e6 + 6e-6, 1e-9);
  EXPECT_EQ(slow.bound, "vectors between hosts");
  EXPECT_GT(slow.seconds, forecast("hosts=2,gpus=1,network=10:5").seconds);
}

TEST(ScaleForecast, KeysThatOccurOftenLeaveAHostOnce) {
  // With 100 and 3000 rows, the index of a key takes one byte in the first slot, and two bytes in the second.
  const Config config =
      one_table(kSamples, R"("type": "SGD", "sgd_hparam": {"learning_rate": 1})",
                R"("type": "LocalizedSlotSparseEmbeddingHash", "sparse_embedding_hparam": {"embedding_vec_size": 16,
                   "combiner": "sum", "slot_size_array": [100, 3000]})");
  const double half = kSamples / 2.0, few = assumed_keys(config, kSamples / 2)[0][0].distinct,
               many = assumed_keys(config, kSamples / 2)[0][1].distinct;
  ASSERT_LE(few, 100);
  ASSERT_GT(many, 256);
  ASSERT_LT(many, half);
  // Each slot is owned by one of the hosts. The forecast counts the host that sends more vectors.
  const double keys = ((few + many) * 8 + half + 2 * half) / 2, vectors = many * kDim * 4;
  EXPECT_DOUBLE_EQ(forecast_scale(config, cluster_from("hosts=2,gpus=1,network=10:5"),
                                  expected_ceilings(*find_known_gpu("H100"), DType::f32, false), 80e9, {})
                       .bytes_between,
                   keys + 2 * vectors + kParameters * 4);
}

TEST(ScaleForecast, MoreGpusThanSlotsLeaveSomeWithoutRows) {
  EXPECT_DOUBLE_EQ(forecast("hosts=1,gpus=2").busiest, 1);
  EXPECT_DOUBLE_EQ(forecast("hosts=1,gpus=8").busiest, 4);
  EXPECT_DOUBLE_EQ(forecast("hosts=1,gpus=8", {}, "distributed").busiest, 1);
}

TEST(ScaleForecast, OneGpuTakesWhatWasMeasured) {
  EXPECT_DOUBLE_EQ(forecast("gpus=1", {{kSamples, 0.5}}).seconds, 0.5);
  EXPECT_GT(forecast("gpus=1", {{kSamples / 2, 0.5}, {kSamples * 2, 0.5}}).seconds, 0.1);
  const MeasuredStep step = measured_step_from("16384:1.05");
  EXPECT_EQ(step.samples, 16384);
  EXPECT_DOUBLE_EQ(step.seconds, 1.05e-3);
}

TEST(ScaleForecast, WordsOfAClusterAreRead) {
  const Cluster cluster = cluster_from("hosts=16,gpus=4,network=8xib400,links=pcie");
  EXPECT_EQ(cluster.all_gpus(), 64);
  EXPECT_DOUBLE_EQ(cluster.between.bytes, 8 * 400e9 / 8 * 0.9);
  EXPECT_DOUBLE_EQ(cluster.inside.bytes, 20e9);
  EXPECT_DOUBLE_EQ(cluster_from("hosts=2,network=45:20").between.seconds, 20e-6);
  const std::pair<const char*, const char*> wrong[] = {
      {"hosts=2", "several hosts need network="},
      {"hosts=0,network=ib400", "'0' is not a number above 0"},
      {"hosts=1.5,network=ib400", "not a whole number"},
      {"hosts=2,network=token-ring", "expected ib or eth with Gb/s"},
      {"hosts=2,network=ibfast", "'fast' is not a number above 0"},
      {"hosts=2,net=ib400", "'net=ib400'; expected hosts=, gpus=, network= or links="},
      {"gpus=2,links=wire", "lacks the latency in microseconds"}};
  for (const auto& [text, says] : wrong)
    EXPECT_NE(message_of(Kind::usage, [words = text] { cluster_from(words); }).find(says), std::string::npos) << text;
  EXPECT_NE(message_of(Kind::usage, [] { measured_step_from("1.05"); }).find("expected SAMPLES:MS"), std::string::npos);
}

}  // namespace
}  // namespace hctr::test
