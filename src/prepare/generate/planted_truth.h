// The hidden model behind generated data. Labels are drawn from its probabilities, so the best possible metrics are
// known.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/data/record_shape.h"

namespace hctr {

/// The inputs of a generated sample. Keys are given as frequency ranks within their slot.
struct PlantedSample {
  std::vector<float> dense;    ///< [dense_dim], uniform in [0, 1)
  std::vector<int32_t> nnz;    ///< [slots]
  std::vector<int64_t> ranks;  ///< [sum of nnz]; rank 0 is the most frequent key of its slot
};

/// The hidden model of one label. The raw value of a sample is the sum of three terms:
///   keys    the weights of the keys of all slots
///   dense   each dense value times its weight
///   pairs   for the first few pairs of adjacent slots, the product of the hidden factors of both slots
/// The third term has the fraction `interactions` of the variance. Dense values have 15 % of the remaining variance. A
/// linear (wide) model can learn the first two terms; the third needs a deep model. The third term has few pairs, so
/// that a million samples suffice to learn it. All weights are normal and are pure functions of (seed, label, slot,
/// rank).
class PlantedTruth {
 public:
  /// Each label has its own model. `related`: correlation between the weights of `label` and of label 0. `mean_nnz`
  /// [slots]: expected number of keys per slot. The weights of a slot are scaled by its expected number of keys, so
  /// that all slots contribute equal variance.
  PlantedTruth(const RecordShape&, std::span<const double> mean_nnz, double interactions, uint64_t seed, int64_t label,
               double related);

  /// Fills the table of weights of frequent keys. `vocabulary`: [slots].
  void prepare(std::span<const int64_t> vocabulary);
  double raw(const PlantedSample&) const;

  /// Fits scale and bias to raw values of typical samples: logits then have standard deviation `spread`, and
  /// probabilities have mean `positive_share`.
  void calibrate(std::span<const double> raw_values, double spread, double positive_share);
  /// The true probability of label 1.
  double probability(double raw_value) const;

 private:
  struct Weights {
    float linear, factor0, factor1;
  };
  Weights weights(int64_t slot, int64_t rank) const;
  double mixed(double first, double own) const { return related_ * first + std::sqrt(1 - related_ * related_) * own; }

  uint64_t first_key_, key_;  // first_key_: key of label 0's model; key_: key of this label's model
  double related_;            // correlation with label 0; 0 for label 0 itself
  int64_t slots_, pairs_;
  std::vector<double> per_key_;             // [slots] 1 / sqrt(mean nnz)
  std::vector<double> dense_;               // [dense_dim]
  std::vector<std::vector<Weights>> head_;  // [slots][frequent ranks]
  double linear_share_ = 0, pair_share_ = 0;
  double scale_ = 1, bias_ = 0;
};

}  // namespace hctr
