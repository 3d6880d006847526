// Reference implementation of EmbeddingSet: maps of rows, with every formula in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/set/set_rules.h"
#include "hctr/embedding.h"
#include "support/plain_optimizer.h"

namespace hctr::test {

/// The keys and weights of a feature in a batch: [sample][i].
struct PlainBags {
  std::vector<std::vector<int64_t>> keys;
  std::vector<std::vector<double>> weights;
};

class PlainSet {
 public:
  explicit PlainSet(const EmbeddingOptions& options) : options_(options) {}

  struct Row {
    std::vector<PlainWeight> elements;
    double row_sum = 0;
    int64_t last = 1;
  };
  using Table = std::map<int64_t, Row>;
  Table& table(const std::string& name) { return tables_[name]; }

  void add_row(const std::string& name, int64_t key, std::span<const float> vector) {
    const ops::Optimizer rule = rule_of(options_of(name));
    Row row;
    for (const float element : vector) row.elements.emplace_back(rule, static_cast<double>(element));
    row.row_sum = static_cast<double>(rule.initial);
    table(name).emplace(key, row);
  }

  /// The vectors of a feature: [vector][element].
  using Vectors = std::vector<std::vector<double>>;
  Vectors pool(size_t feature, const PlainBags& bags) {
    const EmbeddingFeature& of = options_.features[feature];
    const auto dim = static_cast<size_t>(options_of(of.table).dim);
    Vectors out;
    for (size_t b = 0; b < bags.keys.size(); ++b) {
      std::vector<double> sum(dim, 0);
      const double divisor = divisor_of(of.pooling, bags.weights[b]);
      bool any = false;
      for (size_t i = 0; i < bags.keys[b].size(); ++i) {
        const Row* const row = find(of.table, bags.keys[b][i]);
        std::vector<double> own(dim, 0);
        for (size_t e = 0; row && e < dim; ++e) own[e] = row->elements[e].w;
        if (of.pooling == Pooling::none) {
          out.push_back(own);
        } else if (of.pooling == Pooling::max) {
          for (size_t e = 0; row && e < dim; ++e) sum[e] = any ? std::max(sum[e], own[e]) : own[e];
          any = any || row;
        } else {
          for (size_t e = 0; e < dim && divisor != 0; ++e) sum[e] += bags.weights[b][i] * own[e] / divisor;
        }
      }
      if (of.pooling != Pooling::none) out.push_back(sum);
    }
    return out;
  }

  /// Computes the gradient of each key's weight from the gradients of the vectors.
  std::vector<double> weight_gradients(size_t feature, const PlainBags& bags, const Vectors& dy) {
    const EmbeddingFeature& of = options_.features[feature];
    std::vector<double> out;
    for (size_t b = 0; b < bags.keys.size(); ++b) {
      const std::vector<double>& weights = bags.weights[b];
      const double divisor = divisor_of(of.pooling, weights);
      std::vector<double> dots;
      double sum = 0;
      for (size_t i = 0; i < weights.size(); ++i) {
        const Row* const row = find(of.table, bags.keys[b][i]);
        double dot = 0;
        for (size_t e = 0; row && e < dy[b].size(); ++e) dot += row->elements[e].w * dy[b][e];
        dots.push_back(dot);
        sum += weights[i] * dot;
      }
      for (size_t i = 0; i < weights.size(); ++i) {
        double of_divisor = 0;  // derivative of the divisor with respect to the weight
        if (of.pooling == Pooling::mean) of_divisor = 1;
        if (of.pooling == Pooling::sqrtn && divisor != 0) of_divisor = weights[i] / divisor;
        out.push_back(divisor == 0 ? 0 : dots[i] / divisor - sum * of_divisor / (divisor * divisor));
      }
    }
    return out;
  }

  /// The summed gradient of each row that occurs in the batch.
  using Gradients = std::map<int64_t, std::vector<double>>;
  void add_gradients(size_t feature, const PlainBags& bags, const Vectors& dy, Gradients& to) {
    const EmbeddingFeature& of = options_.features[feature];
    const auto dim = static_cast<size_t>(options_of(of.table).dim);
    size_t vector = 0;
    for (size_t b = 0; b < bags.keys.size(); ++b) {
      const double divisor = divisor_of(of.pooling, bags.weights[b]);
      for (size_t i = 0; i < bags.keys[b].size(); ++i) {
        std::vector<double>& g = to.try_emplace(bags.keys[b][i], dim, 0.0).first->second;
        if (of.pooling == Pooling::none) {
          for (size_t e = 0; e < dim; ++e) g[e] += dy[vector][e];
          ++vector;
        } else if (of.pooling == Pooling::max) {
          for (size_t e = 0; e < dim; ++e)
            if (first_largest(of.table, bags.keys[b], e) == i) g[e] += dy[b][e];
        } else if (divisor != 0) {
          for (size_t e = 0; e < dim; ++e) g[e] += bags.weights[b][i] / divisor * dy[b][e];
        }
      }
    }
  }

  /// Applies update number t to a table.
  void update(const std::string& name, const Gradients& gradients, double rate, int64_t t) {
    const EmbeddingTableOptions& of = options_of(name);
    const ops::Optimizer rule = rule_of(of);
    for (auto& [key, row] : table(name)) {
      const auto found = gradients.find(key);
      if (found == gradients.end() && of.optimizer.rows != EmbeddingOptimizer::Rows::global) continue;
      const std::vector<double> none(row.elements.size(), 0.0);
      const std::vector<double>& g = found == gradients.end() ? none : found->second;
      if (of.optimizer.rows == EmbeddingOptimizer::Rows::lazy_global) {
        update_lazily(rule, row, g, rate, t);
      } else if (rule.row_wise) {
        double squares = 0;
        for (const double element : g) squares += element * element;
        row.row_sum += squares / static_cast<double>(g.size());
        for (size_t e = 0; e < g.size(); ++e)
          row.elements[e].w -= rate * g[e] / (std::sqrt(row.row_sum) + static_cast<double>(rule.epsilon));
      } else {
        for (size_t e = 0; e < g.size(); ++e) plain_update(rule, row.elements[e], g[e], rate, t);
      }
    }
  }

 private:
  const EmbeddingTableOptions& options_of(const std::string& name) const {
    return *std::find_if(options_.tables.begin(), options_.tables.end(),
                         [&](const EmbeddingTableOptions& table) { return table.name == name; });
  }
  const Row* find(const std::string& name, int64_t key) {
    const auto row = table(name).find(key);
    return row == table(name).end() ? nullptr : &row->second;
  }
  static double divisor_of(Pooling pooling, const std::vector<double>& weights) {
    double sum = 0, squares = 0;
    for (const double weight : weights) {
      sum += weight;
      squares += weight * weight;
    }
    return pooling == Pooling::mean ? sum : pooling == Pooling::sqrtn ? std::sqrt(squares) : 1;
  }
  size_t first_largest(const std::string& name, const std::vector<int64_t>& keys, size_t element) {
    size_t best = keys.size();
    for (size_t i = 0; i < keys.size(); ++i) {
      const Row* const row = find(name, keys[i]);
      if (!row) continue;
      if (best == keys.size() || row->elements[element].w > find(name, keys[best])->elements[element].w) best = i;
    }
    return best;
  }
  /// Lazy Adam: first applies the global updates skipped since the row's last update, then updates the moments.
  static void update_lazily(const ops::Optimizer& rule, Row& row, const std::vector<double>& g, double rate,
                            int64_t t) {
    const double b1 = static_cast<double>(rule.beta1), b2 = static_cast<double>(rule.beta2);
    const double before = static_cast<double>(row.last), passed = static_cast<double>(t - row.last);
    for (size_t e = 0; e < g.size(); ++e) {
      double &m = row.elements[e].state[0], &v = row.elements[e].state[1];
      row.elements[e].w -= rate / (1 - b1) * std::sqrt(1 - std::pow(b2, before)) / (1 - std::pow(b1, before)) *
                           (1 - std::pow(b1, passed)) * m / (std::sqrt(v) + static_cast<double>(rule.epsilon));
      m = std::pow(b1, passed) * m + (1 - b1) * g[e];
      v = std::pow(b2, passed) * v + (1 - b2) * g[e] * g[e];
    }
    row.last = t;
  }

  EmbeddingOptions options_;
  std::map<std::string, Table> tables_;
};

}  // namespace hctr::test
