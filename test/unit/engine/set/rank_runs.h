// Runs a set on several ranks, which are threads, and the same set on one rank with all samples.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/base/expect.h"
#include "hctr/embedding.h"
#include "support/run_ranks.h"
#include "unit/engine/set/set_cases.h"

namespace hctr::test {

/// The samples of one rank in one batch, and the gradients of their vectors.
struct RankSamples {
  int64_t samples = 0;
  std::vector<std::vector<int64_t>> keys, offsets;       // per feature
  std::vector<std::vector<float>> weights, gradients{};  // per feature; gradients are contiguous

  std::vector<FeatureKeys> views(const EmbeddingOptions& options) const {
    std::vector<FeatureKeys> all;
    for (size_t f = 0; f < keys.size(); ++f)
      all.push_back({.keys = keys[f].data(),
                     .count = static_cast<int64_t>(keys[f].size()),
                     .offsets = offsets[f].data(),
                     .weights = options.features[f].weighted ? weights[f].data() : nullptr});
    return all;
  }
};

inline int64_t dim_of_feature(const EmbeddingOptions& options, size_t f) {
  for (const EmbeddingTableOptions& table : options.tables)
    if (table.name == options.features[f].table) return table.dim;
  return 0;
}

/// Random samples with few distinct keys, so that several ranks use the same keys.
inline RankSamples random_samples(const EmbeddingOptions& options, int64_t samples, std::mt19937_64& random,
                                  int64_t vocabulary = 40) {
  RankSamples out{.samples = samples, .keys = {}, .offsets = {}, .weights = {}};
  for (size_t f = 0; f < options.features.size(); ++f) {
    const EmbeddingFeature& feature = options.features[f];
    bool numbers = false;
    for (const EmbeddingTableOptions& table : options.tables)
      if (table.name == feature.table) numbers = table.rows > 0;
    std::vector<int64_t> keys, offsets = {0};
    std::vector<float> weights, gradients;
    for (int64_t b = 0; b < samples; ++b) {
      for (auto n = random() % 5; n > 0; --n) {
        const auto key = static_cast<int64_t>(random() % static_cast<uint64_t>(vocabulary));
        keys.push_back(numbers ? key : key * 1'234'567'890'123 - 77);
        weights.push_back(0.25f + 0.25f * static_cast<float>(random() % 8));
      }
      offsets.push_back(static_cast<int64_t>(keys.size()));
    }
    const auto vectors = feature.pooling == Pooling::none ? keys.size() : static_cast<size_t>(samples);
    for (size_t i = 0; i < vectors * static_cast<size_t>(dim_of_feature(options, f)); ++i)
      gradients.push_back((static_cast<float>(random() % 1000) - 500.0f) / 700.0f);
    out.keys.push_back(std::move(keys));
    out.offsets.push_back(std::move(offsets));
    out.weights.push_back(std::move(weights));
    out.gradients.push_back(std::move(gradients));
  }
  return out;
}

/// Concatenates the samples of all ranks.
inline RankSamples joined(const std::vector<RankSamples>& ranks) {
  RankSamples all = ranks.front();
  for (size_t r = 1; r < ranks.size(); ++r) {
    all.samples += ranks[r].samples;
    for (size_t f = 0; f < all.keys.size(); ++f) {
      const int64_t before = all.offsets[f].back();
      for (size_t b = 1; b < ranks[r].offsets[f].size(); ++b) all.offsets[f].push_back(before + ranks[r].offsets[f][b]);
      const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
      append(all.keys[f], ranks[r].keys[f]);
      append(all.weights[f], ranks[r].weights[f]);
      append(all.gradients[f], ranks[r].gradients[f]);
    }
  }
  return all;
}

/// Output memory for a vector per sample or key of each feature, and views of the memory.
struct RankVectors {
  RankVectors(const EmbeddingOptions& options, const RankSamples& of) {
    for (size_t f = 0; f < of.keys.size(); ++f) values.emplace_back(of.gradients[f].size(), -7.0f);
    for (size_t f = 0; f < of.keys.size(); ++f) views.push_back({values[f].data(), dim_of_feature(options, f)});
  }
  std::vector<std::vector<float>> values;
  std::vector<FeatureVectors<float>> views;
};

inline std::vector<FeatureVectors<const float>> gradients_of(const EmbeddingOptions& options, const RankSamples& of) {
  std::vector<FeatureVectors<const float>> views;
  for (size_t f = 0; f < of.gradients.size(); ++f)
    views.push_back({of.gradients[f].data(), dim_of_feature(options, f)});
  return views;
}

/// Results of steps: vectors and weight gradients, by step and feature.
using RankNumbers = std::vector<std::vector<std::vector<float>>>;

/// Runs one step, and appends its results to `numbers`.
inline void run_step(EmbeddingSet& set, const RankSamples& of, const UpdateStep& step, RankNumbers& numbers) {
  const EmbeddingOptions& options = set.options();
  RankVectors vectors(options, of);
  const auto batch = set.forward(of.samples, of.views(options), vectors.views);
  std::vector<std::vector<float>> weights;
  for (const auto& keys : of.keys) weights.emplace_back(keys.size(), -5.0f);
  std::vector<float*> dw;
  for (size_t f = 0; f < weights.size(); ++f) dw.push_back(options.features[f].weighted ? weights[f].data() : nullptr);
  set.weight_gradients(batch, gradients_of(options, of), dw);
  set.update(batch, gradients_of(options, of), step);
  numbers.push_back(vectors.values);
  numbers.push_back(weights);
}

/// Joins the results of all ranks into the form of a single rank's results.
inline RankNumbers joined(const std::vector<RankNumbers>& ranks) {
  RankNumbers all = ranks.front();
  for (size_t r = 1; r < ranks.size(); ++r)
    for (size_t i = 0; i < all.size(); ++i)
      for (size_t f = 0; f < all[i].size(); ++f)
        all[i][f].insert(all[i][f].end(), ranks[r][i][f].begin(), ranks[r][i][f].end());
  return all;
}

/// All rows of all tables, with the optimizer states.
using AllRows = std::map<std::string, std::map<int64_t, std::vector<float>>>;
inline AllRows all_rows(EmbeddingSet& set) {
  AllRows all;
  for (const EmbeddingTableOptions& table : set.options().tables)
    set.export_rows(table.name, true, [&](const TableRows& rows) {
      const size_t count = rows.keys.size();
      for (size_t i = 0; i < count; ++i) {
        std::vector<float>& row = all[table.name][rows.keys[i]];
        const auto append = [&](std::span<const float> values) {
          const size_t width = values.size() / count;
          row.insert(row.end(), values.begin() + static_cast<ptrdiff_t>(i * width),
                     values.begin() + static_cast<ptrdiff_t>((i + 1) * width));
        };
        append(rows.vectors);
        for (const auto state : rows.states) append(state);
      }
    });
  return all;
}

/// Calls body(set, rank) for each rank of a group of threads.
inline void on_ranks(const EmbeddingOptions& options, int count,
                     const std::function<void(EmbeddingSet&, int rank)>& body) {
  std::vector<EmbeddingRank> ranks = EmbeddingRank::of_threads(count);
  run_ranks(count, [&](int rank) {
    EmbeddingOptions own = options;
    own.rank = std::move(ranks[static_cast<size_t>(rank)]);
    EmbeddingSet set(own);
    own.rank = {};
    body(set, rank);
  });
}

constexpr int kSetRanks = 3;

inline EmbeddingOptions set_of_ranks(Pooling pooling = Pooling::sum) {
  EmbeddingTableOptions items{.name = "items", .dim = 4}, days{.name = "days", .dim = 3, .rows = 40};
  items.optimizer = days.optimizer = example(EmbeddingOptimizer::Rule::adam, EmbeddingOptimizer::Formula::config);
  return {.tables = {items, days},
          .features = {{"item", "items", pooling, false},
                       {"day", "days", Pooling::mean, false},
                       {"seen", "items", Pooling::sum, true}},
          .seed = 3};
}

/// Samples of each rank for several steps. The sample counts differ, and some are 0.
inline std::vector<std::vector<RankSamples>> uneven_steps(const EmbeddingOptions& options, int64_t steps,
                                                          uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::array<std::array<int64_t, kSetRanks>, 4> sizes = {{{3, 0, 5}, {0, 0, 1}, {2, 7, 1}, {0, 0, 0}}};
  std::vector<std::vector<RankSamples>> all;
  for (int64_t step = 0; step < steps; ++step) {
    all.emplace_back();
    for (const int64_t samples : sizes[static_cast<size_t>(step) % sizes.size()])
      all.back().push_back(random_samples(options, samples, random));
  }
  return all;
}

struct RanksResult {
  RankNumbers numbers;
  AllRows rows;
  int64_t updates = 0;
};

inline UpdateStep step_number(size_t i) { return {.learning_rate = i % 2 == 0 ? 0.05f : 0.02f}; }

/// Runs all samples of each step on one rank.
inline RanksResult run_on_one(const EmbeddingOptions& options, const std::vector<std::vector<RankSamples>>& steps) {
  RanksResult result;
  EmbeddingSet set(options);
  for (size_t i = 0; i < steps.size(); ++i) run_step(set, joined(steps[i]), step_number(i), result.numbers);
  result.rows = all_rows(set);
  result.updates = set.updates();
  return result;
}

inline void expect_error_of(Kind kind, const std::string& text, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

}  // namespace hctr::test
