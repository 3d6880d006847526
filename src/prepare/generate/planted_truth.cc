#include "prepare/generate/planted_truth.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/expect.h"
#include "core/base/random.h"

namespace hctr {
namespace {

constexpr int64_t kHead = 16384;      // per slot, number of most frequent keys whose weights are kept in a table
constexpr int64_t kMostPairs = 3;     // maximum number of slot pairs with interacting keys
constexpr double kDenseShare = 0.15;  // fraction of the linear part's variance that comes from dense values

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

uint64_t key_of(uint64_t seed, int64_t label) { return random_key(seed, random_stream(cat("planted truth ", label))); }

/// Draws the normally distributed weight of dense value `d`. `key` identifies the label.
double dense_normal(uint64_t key, int64_t d) {
  const Random4 bits = philox(key, ~uint64_t{0}, static_cast<uint64_t>(d));
  return standard_normal(bits.v[0], bits.v[1]);
}

/// Draws the three normally distributed values of a key. `key` identifies the label; `slot` and `rank` identify the
/// key.
std::array<double, 3> key_normals(uint64_t key, int64_t slot, int64_t rank) {
  const Random4 bits = philox(key, static_cast<uint64_t>(slot), 2 * static_cast<uint64_t>(rank));
  const Random4 more = philox(key, static_cast<uint64_t>(slot), 2 * static_cast<uint64_t>(rank) + 1);
  return {standard_normal(bits.v[0], bits.v[1]), standard_normal(bits.v[2], bits.v[3]),
          standard_normal(more.v[0], more.v[1])};
}

}  // namespace

PlantedTruth::PlantedTruth(const RecordShape& shape, std::span<const double> mean_nnz, double interactions,
                           uint64_t seed, int64_t label, double related)
    : first_key_(key_of(seed, 0)),
      key_(key_of(seed, label)),
      related_(label == 0 ? 0 : related),
      slots_(shape.slots()),
      pairs_(std::min<int64_t>(kMostPairs, shape.slots() / 2)) {
  for (const double mean : mean_nnz) per_key_.push_back(1 / std::sqrt(std::max(mean, 1e-3)));
  const auto n = static_cast<double>(slots_);
  linear_share_ = slots_ > 0 ? std::sqrt((1 - kDenseShare) * (1 - interactions) / n) : 0;
  // divided by 2, because left0 * factor0 + left1 * factor1 has variance 2
  pair_share_ = pairs_ > 0 ? std::sqrt(interactions / static_cast<double>(pairs_) / 2) : 0;
  const double dense_share = std::sqrt(12 * kDenseShare * (1 - interactions) / static_cast<double>(shape.dense_dim));
  for (int64_t d = 0; d < shape.dense_dim; ++d)
    dense_.push_back(mixed(dense_normal(first_key_, d), dense_normal(key_, d)) * dense_share);
}

PlantedTruth::Weights PlantedTruth::weights(int64_t slot, int64_t rank) const {
  auto normals = key_normals(key_, slot, rank);
  if (related_ != 0) {
    const auto first = key_normals(first_key_, slot, rank);
    for (size_t i = 0; i < normals.size(); ++i) normals[i] = mixed(first[i], normals[i]);
  }
  return {static_cast<float>(normals[0]), static_cast<float>(normals[1]), static_cast<float>(normals[2])};
}

void PlantedTruth::prepare(std::span<const int64_t> vocabulary) {
  head_.resize(static_cast<size_t>(slots_));
  for (int64_t s = 0; s < slots_; ++s) {
    auto& head = head_[static_cast<size_t>(s)];
    const int64_t count = std::min(kHead, vocabulary[static_cast<size_t>(s)]);
    for (int64_t r = 0; r < count; ++r) head.push_back(weights(s, r));
  }
}

double PlantedTruth::raw(const PlantedSample& sample) const {
  double sum = 0;
  for (size_t d = 0; d < dense_.size(); ++d) sum += dense_[d] * (static_cast<double>(sample.dense[d]) - 0.5);
  const int64_t* rank = sample.ranks.data();
  // Factors of the preceding slot. Slots form pairs: the second slot of each pair multiplies these factors by its own.
  double left0 = 0, left1 = 0;
  for (int64_t s = 0; s < slots_; ++s) {
    const auto slot = static_cast<size_t>(s);
    double linear = 0, factor0 = 0, factor1 = 0;
    for (int32_t k = 0; k < sample.nnz[slot]; ++k, ++rank) {
      const auto& head = head_[slot];
      const Weights w =
          *rank < static_cast<int64_t>(head.size()) ? head[static_cast<size_t>(*rank)] : weights(s, *rank);
      linear += static_cast<double>(w.linear);
      factor0 += static_cast<double>(w.factor0);
      factor1 += static_cast<double>(w.factor1);
    }
    const double per_key = per_key_[slot];
    sum += linear_share_ * per_key * linear;
    if (s % 2 == 1 && s / 2 < pairs_) sum += pair_share_ * per_key * (left0 * factor0 + left1 * factor1);
    left0 = per_key * factor0;
    left1 = per_key * factor1;
  }
  return sum;
}

void PlantedTruth::calibrate(std::span<const double> raw_values, double spread, double positive_share) {
  const auto n = static_cast<double>(raw_values.size());
  double sum = 0, squares = 0;
  for (const double value : raw_values) sum += value;
  for (const double value : raw_values) squares += (value - sum / n) * (value - sum / n);
  scale_ = squares > 0 ? spread / std::sqrt(squares / n) : 0;
  double low = -60, high = 60;
  for (int step = 0; step < 60; ++step) {
    bias_ = (low + high) / 2;
    double mean = 0;
    for (const double value : raw_values) mean += probability(value);
    (mean / n < positive_share ? low : high) = bias_;
  }
}

double PlantedTruth::probability(double raw_value) const { return sigmoid(bias_ + scale_ * raw_value); }

}  // namespace hctr
