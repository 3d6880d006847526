#include "base/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/auc.h"
#include "base/error.h"

namespace hctr {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

void expect_pairs(std::span<const float> scores, std::span<const float> labels) {
  HCTR_EXPECT(scores.size() == labels.size(), scores.size(), " scores for ", labels.size(), " labels");
}

double sum(std::span<const float> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

bool has_nan(std::span<const float> values) {
  return std::any_of(values.begin(), values.end(), [](float value) { return std::isnan(value); });
}

double entropy(double p, double y) { return -(y * std::log(p) + (1 - y) * std::log(1 - p)); }

double gain_at(size_t place) { return 1 / std::log2(static_cast<double>(place) + 2); }

/// Places sorted by falling key.
std::vector<size_t> falling(std::span<const float> keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] > keys[b]; });
  return order;
}

/// Sum of label times discount; the labels of equal keys share their discounts.
double cumulated_gain(std::span<const float> keys, std::span<const float> labels) {
  const std::vector<size_t> order = falling(keys);
  double gain = 0;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    double discounts = 0, of_labels = 0;
    for (; end < order.size() && keys[order[end]] == keys[order[begin]]; ++end) {
      discounts += gain_at(end);
      of_labels += static_cast<double>(labels[order[end]]);
    }
    gain += of_labels * discounts / static_cast<double>(end - begin);
  }
  return gain;
}

}  // namespace

double log_loss(std::span<const float> probabilities, std::span<const float> labels) {
  expect_pairs(probabilities, labels);
  constexpr double kEdge = 1e-15;
  double total = 0;
  for (size_t i = 0; i < labels.size(); ++i)
    total += entropy(std::clamp(static_cast<double>(probabilities[i]), kEdge, 1 - kEdge), static_cast<double>(labels[i]));
  return labels.empty() ? kNaN : total / static_cast<double>(labels.size());
}

double normalized_entropy(std::span<const float> probabilities, std::span<const float> labels) {
  expect_pairs(probabilities, labels);
  const double rate = labels.empty() ? 0 : sum(labels) / static_cast<double>(labels.size());
  if (!(rate > 0 && rate < 1)) return kNaN;
  return log_loss(probabilities, labels) / entropy(rate, rate);
}

double calibration(std::span<const float> probabilities, std::span<const float> labels) {
  expect_pairs(probabilities, labels);
  const double positives = sum(labels);
  return positives > 0 ? sum(probabilities) / positives : kNaN;
}

double grouped_auc(std::span<const float> scores, std::span<const float> labels, std::span<const int64_t> groups) {
  expect_pairs(scores, labels);
  HCTR_EXPECT(groups.size() == labels.size(), groups.size(), " groups for ", labels.size(), " labels");
  if (has_nan(scores)) return kNaN;
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return groups[a] < groups[b]; });
  double total = 0, weight = 0;
  std::vector<float> group_scores, group_labels;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    group_scores.clear();
    group_labels.clear();
    for (; end < order.size() && groups[order[end]] == groups[order[begin]]; ++end) {
      group_scores.push_back(scores[order[end]]);
      group_labels.push_back(labels[order[end]]);
    }
    const double area = area_under_roc(group_scores, group_labels);
    if (std::isnan(area)) continue;
    total += area * static_cast<double>(end - begin);
    weight += static_cast<double>(end - begin);
  }
  return weight > 0 ? total / weight : kNaN;
}

double hit_rate(std::span<const float> scores, std::span<const float> labels, double threshold) {
  expect_pairs(scores, labels);
  if (has_nan(scores)) return kNaN;
  int64_t chosen = 0, hits = 0;
  for (size_t i = 0; i < labels.size(); ++i)
    if (static_cast<double>(scores[i]) > threshold) {
      ++chosen;
      hits += labels[i] > 0.5f;
    }
  return chosen > 0 ? static_cast<double>(hits) / static_cast<double>(chosen) : kNaN;
}

double ndcg(std::span<const float> scores, std::span<const float> labels) {
  expect_pairs(scores, labels);
  if (has_nan(scores) || has_nan(labels)) return kNaN;
  const double best = cumulated_gain(labels, labels);
  return best > 0 ? cumulated_gain(scores, labels) / best : kNaN;
}

double smape(std::span<const float> predictions, std::span<const float> labels) {
  expect_pairs(predictions, labels);
  double total = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto p = static_cast<double>(predictions[i]), y = static_cast<double>(labels[i]);
    if (p != 0 || y != 0) total += std::abs(p - y) / ((std::abs(p) + std::abs(y)) / 2);
  }
  return labels.empty() ? kNaN : total / static_cast<double>(labels.size());
}

}  // namespace hctr
