// Option values for EmbeddingSet tests.
#pragma once

#include <array>
#include <random>
#include <set>
#include <vector>

#include "hctr/embedding.h"

namespace hctr::test {

/// Returns combinations of option values such that every pair of values of two options occurs in some combination.
inline std::vector<std::vector<int>> all_pairs(const std::vector<int>& sizes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::set<std::array<int, 4>> open;
  for (int a = 0; a < static_cast<int>(sizes.size()); ++a)
    for (int b = a + 1; b < static_cast<int>(sizes.size()); ++b)
      for (int x = 0; x < sizes[static_cast<size_t>(a)]; ++x)
        for (int y = 0; y < sizes[static_cast<size_t>(b)]; ++y) open.insert({a, b, x, y});
  std::vector<std::vector<int>> cases;
  while (!open.empty()) {
    std::vector<int> best;
    size_t covered = 0;
    for (int attempt = 0; attempt < 30; ++attempt) {
      std::vector<int> one;
      for (const int size : sizes) one.push_back(static_cast<int>(random() % static_cast<uint64_t>(size)));
      if (attempt % 2 == 0) {
        const std::array<int, 4> pair = *std::next(open.begin(), static_cast<ptrdiff_t>(random() % open.size()));
        one[static_cast<size_t>(pair[0])] = pair[2];
        one[static_cast<size_t>(pair[1])] = pair[3];
      }
      size_t count = 0;
      for (const auto& [a, b, x, y] : open)
        count += one[static_cast<size_t>(a)] == x && one[static_cast<size_t>(b)] == y;
      if (count > covered) {
        best = one;
        covered = count;
      }
    }
    if (best.empty()) continue;
    std::erase_if(open, [&](const std::array<int, 4>& pair) {
      return best[static_cast<size_t>(pair[0])] == pair[2] && best[static_cast<size_t>(pair[1])] == pair[3];
    });
    cases.push_back(best);
  }
  return cases;
}

/// An optimizer rule with constants so large that each term matters within few steps.
inline EmbeddingOptimizer example(EmbeddingOptimizer::Rule rule, EmbeddingOptimizer::Formula formula) {
  return {.rule = rule,
          .formula = formula,
          .beta1 = 0.8f,
          .beta2 = 0.9f,
          .epsilon = 1e-2f,
          .momentum = 0.6f,
          .smoothing = 0.8f,
          .initial = 0.2f,
          .beta = 0.5f,
          .lambda1 = 0.02f,
          .lambda2 = 0.1f,
          .weight_decay = 0.1f};
}

inline std::vector<EmbeddingOptimizer> every_optimizer() {
  using Rule = EmbeddingOptimizer::Rule;
  using Formula = EmbeddingOptimizer::Formula;
  std::vector<EmbeddingOptimizer> all;
  for (const Formula formula : {Formula::config, Formula::torch, Formula::keras})
    for (const Rule rule : {Rule::sgd, Rule::momentum_sgd, Rule::nesterov, Rule::adagrad, Rule::rmsprop, Rule::ftrl,
                            Rule::adam, Rule::adamw, Rule::adamax, Rule::adadelta}) {
      EmbeddingOptimizer one = example(rule, formula);
      if (rule != Rule::adagrad) one.initial = 0;
      all.push_back(one);
    }
  EmbeddingOptimizer row_wise = example(Rule::adagrad, Formula::config), lazy = example(Rule::adam, Formula::config);
  row_wise.row_wise = true;
  lazy.initial = 0;
  lazy.rows = EmbeddingOptimizer::Rows::lazy_global;
  all.insert(all.end(), {row_wise, lazy});
  return all;
}

}  // namespace hctr::test
