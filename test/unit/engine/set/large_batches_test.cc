// On a GPU, batches of many keys use other kernels than small batches. Compares their results with those of the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "hctr/embedding.h"
#include "support/devices.h"
#include "unit/engine/set/copied.h"
#include "unit/engine/table/table_rig.h"

namespace hctr::test {
namespace {

struct Batches {
  // `keys`: number of keys per feature and batch. If it equals `samples`, each bag has one key; otherwise bag lengths
  // differ.
  int64_t samples, keys;
  std::vector<int64_t> dims;  // one element per table
  int64_t distinct;
  Pooling pooling = Pooling::sum;
  bool row_wise = false;
};

/// Runs three steps. Returns the vectors of all steps, followed by all rows.
std::vector<float> values_of_steps(Device device, const Batches& of) {
  EmbeddingOptions options{.gpu = device.is_cuda() ? device.index : -1, .seed = 3};
  options.most_keys = of.keys;
  for (size_t t = 0; t < of.dims.size(); ++t) {
    EmbeddingTableOptions table{.name = "t" + std::to_string(t), .dim = of.dims[t]};
    table.optimizer.rule = of.row_wise ? EmbeddingOptimizer::Rule::adagrad : EmbeddingOptimizer::Rule::sgd;
    table.optimizer.row_wise = of.row_wise;
    options.features.push_back({"f" + std::to_string(t), table.name, of.pooling});
    options.tables.push_back(table);
  }
  EmbeddingSet set(options);
  std::mt19937_64 random(7);
  std::vector<float> all;
  const auto add = [&](std::span<const float> values) { all.insert(all.end(), values.begin(), values.end()); };
  for (int step = 0; step < 3; ++step) {
    std::vector<Copied<int64_t>> keys, offsets;
    std::vector<Copied<float>> vectors, gradients;
    std::vector<FeatureKeys> given;
    std::vector<FeatureVectors<float>> to;
    std::vector<FeatureVectors<const float>> from;
    for (const int64_t dim : of.dims) {
      std::vector<int64_t> key(static_cast<size_t>(of.keys)), offset = {0};
      // Some keys are frequent, so that there are short and long runs.
      for (int64_t& one : key) {
        const auto draw = static_cast<int64_t>(random() >> 1);
        one = (draw % 4 == 0 ? draw % 50 : draw % of.distinct) * 0x9E3779B97F4A7C15;
      }
      for (int64_t b = 1; b < of.samples; ++b) {
        const auto most = static_cast<uint64_t>(2 * of.keys / of.samples);
        offset.push_back(
            of.samples == of.keys ? b : std::min(of.keys, offset.back() + static_cast<int64_t>(random() % most)));
      }
      offset.push_back(of.keys);
      std::vector<float> dy(static_cast<size_t>(of.samples * dim));
      for (float& value : dy) value = static_cast<float>(static_cast<int64_t>(random() % 2001) - 1000) / 1024;
      keys.emplace_back(device, key);
      offsets.emplace_back(device, offset);
      gradients.emplace_back(device, dy);
      vectors.emplace_back(device, std::vector<float>(dy.size()));
    }
    for (size_t t = 0; t < of.dims.size(); ++t) {
      given.push_back({keys[t].data(), ElementType::i64, of.keys, offsets[t].data(), ElementType::i64});
      to.push_back({vectors[t].data()});
      from.push_back({gradients[t].data()});
    }
    const EmbeddingSet::Batch batch = set.forward(of.samples, given, to);
    set.update(batch, from, {.learning_rate = 0.1f});
    for (const Copied<float>& one : vectors) add(one.values());
  }
  for (const EmbeddingTableOptions& table : options.tables)
    set.export_rows(table.name, false, [&](const TableRows& block) { add(block.vectors); });
  return all;
}

TEST(LargeBatches, HaveTheNumbersOfTheCpu) {
  HCTR_SKIP_WITHOUT_GPU();
  const Batches all[] = {
      {3000, 40000, {64, 16, 128}, 100000},                   // several tables, more than 2^16 rows
      {5000, 90000, {32, 20}, 300, Pooling::mean},            // few distinct keys, so runs are long; mean pooling
      {40000, 40000, {128, 4}, 200000},                       // one key per bag
      {40000, 40000, {33}, 90000},                            // dim 33 permits no vectorized accesses
      {150000, 150000, {32}, 300000, Pooling::sum, true},     // one table, sorted by CUB
      {2000, 100000, {77, 130, 256}, 70000, Pooling::sqrtn},  // longer vectors than a warp reads at a time
      {300, 20000, {8, 12}, 5000, Pooling::sum, true},        // long bags
  };
  for (const Batches& one : all) {
    SCOPED_TRACE(std::to_string(one.keys) + " keys in " + std::to_string(one.samples) + " bags");
    const std::vector<float> cpu = values_of_steps(kCpu, one), gpu = values_of_steps(kGpu, one);
    ASSERT_EQ(cpu.size(), gpu.size());
    // The sums have up to 90,000 gradients. Fused multiply-adds of a GPU round them differently.
    const auto near = [](float a, float b) { return std::abs(a - b) <= 1e-4f * std::max(1.0f, std::abs(a)); };
    const auto differ = std::mismatch(cpu.begin(), cpu.end(), gpu.begin(), near);
    EXPECT_EQ(differ.first - cpu.begin(), static_cast<ptrdiff_t>(cpu.size())) << "place of the first difference";
  }
}

}  // namespace
}  // namespace hctr::test
