// An EmbeddingSet on two GPUs gives the same results as on one GPU with all samples.
#include <gtest/gtest.h>

#include <cstring>

#include "core/device/buffer.h"
#include "core/device/stream.h"
#include "support/devices.h"
#include "unit/engine/set/rank_runs.h"

namespace hctr::test {
namespace {

constexpr int kGpus = 2;

/// An array in page-locked memory, which every GPU can access.
template <class T>
class Locked {
 public:
  explicit Locked(const std::vector<T>& values)
      : count_(values.size()), memory_(kGpu, std::max<size_t>(1, values.size() * sizeof(T))) {
    if (count_ > 0) std::memcpy(memory_.data(), values.data(), count_ * sizeof(T));
  }
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  std::vector<T> values() const { return std::vector<T>(data(), data() + count_); }

 private:
  size_t count_;
  HostBuffer memory_;
};

void run_step_on_gpu(EmbeddingSet& set, const RankSamples& of, int gpu, RankNumbers& numbers) {
  const EmbeddingOptions& options = set.options();
  std::vector<Locked<int64_t>> keys, offsets;
  std::vector<Locked<float>> weights, gradients, vectors, dw;
  std::vector<FeatureKeys> given;
  std::vector<FeatureVectors<float>> to;
  std::vector<FeatureVectors<const float>> from;
  std::vector<float*> weight_gradients;
  for (size_t f = 0; f < of.keys.size(); ++f) {
    const bool weighted = options.features[f].weighted;
    keys.emplace_back(of.keys[f]);
    offsets.emplace_back(of.offsets[f]);
    weights.emplace_back(of.weights[f]);
    gradients.emplace_back(of.gradients[f]);
    vectors.emplace_back(std::vector<float>(of.gradients[f].size(), -7.0f));
    dw.emplace_back(std::vector<float>(of.keys[f].size(), -5.0f));
    given.push_back({.keys = keys.back().data(),
                     .count = static_cast<int64_t>(of.keys[f].size()),
                     .offsets = offsets.back().data(),
                     .weights = weighted ? weights.back().data() : nullptr});
    to.push_back({vectors.back().data(), dim_of_feature(options, f)});
    from.push_back({gradients.back().data(), dim_of_feature(options, f)});
    weight_gradients.push_back(weighted ? dw.back().data() : nullptr);
  }
  const auto batch = set.forward(of.samples, given, to);
  set.weight_gradients(batch, from, weight_gradients);
  set.update(batch, from, {.learning_rate = 0.05f});
  StreamRef{{DeviceKind::cuda, gpu}, nullptr}.synchronize();
  std::vector<std::vector<float>> y, w;
  for (size_t f = 0; f < of.keys.size(); ++f) {
    y.push_back(vectors[f].values());
    w.push_back(dw[f].values());
  }
  numbers.push_back(std::move(y));
  numbers.push_back(std::move(w));
}

void expect_near_numbers(const RankNumbers& one, const RankNumbers& other) {
  ASSERT_EQ(one.size(), other.size());
  for (size_t i = 0; i < one.size(); ++i)
    for (size_t f = 0; f < one[i].size(); ++f) {
      ASSERT_EQ(one[i][f].size(), other[i][f].size());
      for (size_t e = 0; e < one[i][f].size(); ++e) ASSERT_NEAR(one[i][f][e], other[i][f][e], 1e-5) << i << " " << f;
    }
}

TEST(EmbeddingGpuRanks, OnTwoGpusTheNumbersAreThoseOfOne) {
  if (find_gpus().count < kGpus) GTEST_SKIP() << "needs two GPUs";
  using Place = EmbeddingPlacement::Where;
  for (const Place where : {Place::whole, Place::spread, Place::automatic, Place::replicated})
    for (const Pooling pooling : {Pooling::sum, Pooling::mean, Pooling::max, Pooling::none}) {
      SCOPED_TRACE(cat("placement ", static_cast<int>(where), ", pooling ", static_cast<int>(pooling)));
      EmbeddingOptions options = set_of_ranks(pooling);
      options.tables[0].placement.where = where == Place::replicated ? Place::spread : where;
      options.tables[1].placement.where = where;
      std::mt19937_64 random(11);
      std::vector<std::vector<RankSamples>> steps;
      for (const auto& [first, second] : {std::pair(3, 5), std::pair(0, 1), std::pair(200, 70), std::pair(0, 0)})
        steps.push_back({random_samples(options, first, random), random_samples(options, second, random)});

      RankNumbers one;
      AllRows rows, rows_of_ranks;
      {
        EmbeddingOptions alone = options;
        alone.gpu = 0;
        EmbeddingSet set(alone);
        for (const auto& step : steps) run_step_on_gpu(set, joined(step), 0, one);
        rows = all_rows(set);
      }
      std::vector<EmbeddingRank> ranks = EmbeddingRank::of_threads(kGpus);
      std::vector<RankNumbers> numbers(kGpus);
      run_ranks(kGpus, [&](int rank) {
        const auto r = static_cast<size_t>(rank);
        EmbeddingOptions own = options;
        own.gpu = rank;
        own.rank = std::move(ranks[r]);
        EmbeddingSet set(own);
        for (const auto& step : steps) run_step_on_gpu(set, step[r], rank, numbers[r]);
        AllRows mine = all_rows(set);
        if (rank == 0) rows_of_ranks = std::move(mine);
      });
      expect_near_numbers(one, joined(numbers));
      ASSERT_EQ(rows.size(), rows_of_ranks.size());
      for (const auto& [table, of_table] : rows) {
        ASSERT_EQ(of_table.size(), rows_of_ranks.at(table).size());
        for (const auto& [key, row] : of_table)
          for (size_t e = 0; e < row.size(); ++e) ASSERT_NEAR(row[e], rows_of_ranks.at(table).at(key)[e], 1e-5) << key;
      }
    }
}

}  // namespace
}  // namespace hctr::test
