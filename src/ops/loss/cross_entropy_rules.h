// The formulas of ops/loss/cross_entropy.h, shared by every device: the term c(z, y), and the tensor elements that each
// loss reads.
#pragma once

#include <cmath>

#include "core/device/tensor.h"
#include "ops/common/activation_rules.h"
#include "ops/loss/cross_entropy.h"

namespace hctr::ops {

/// One term of a loss: a logit z, its target y in [0, 1] and its weight.
template <class A>
struct CrossEntropyTerm {
  A logit, target, weight;
  bool has_label = true;

  HCTR_HD A probability() const { return Sigmoid::value(logit); }
  /// weight * (max(z, 0) - z y + log(1 + exp(-|z|))).
  HCTR_HD A loss() const {
    const A z = logit, distance = z < 0 ? -z : z;
    return weight * ((z > 0 ? z : A(0)) - z * target + std::log1p(std::exp(-distance)));
  }
  /// The term for a sample from the downsampled data. In downsampled data, the log odds of a positive label are higher
  /// by -log_negative_share. Source: G. King, L. Zeng, "Logistic Regression in Rare Events Data", Political Analysis 9
  /// (2001), "prior correction". The loss contains the correction, so the logit is calibrated for all data.
  HCTR_HD CrossEntropyTerm sampled(float log_negative_share) const {
    return {logit - static_cast<A>(log_negative_share), target, weight, has_label};
  }
  /// `factor` times the derivative of loss().
  HCTR_HD A gradient(A factor) const { return factor * weight * (probability() - target); }
};

/// The weight of a sample's terms: the sample weight times `positive` for a positive label.
template <class A>
struct SampleFactor {
  const A* weights = nullptr;  ///< the weight of sample b is weights[b * stride]; null: all weights are 1
  int64_t stride = 0;
  float positive = 1;
  HCTR_HD A operator()(int64_t b, A target) const {
    const A of_class = target < A(0.5) ? A(1) : static_cast<A>(positive);
    return weights ? of_class * weights[b * stride] : of_class;
  }
};

template <class A>
SampleFactor<A> factor_of(const TermWeights& weights) {
  if (!weights.samples) return {nullptr, 0, weights.positive};
  return {weights.samples->data<const A>(), weights.samples->row_stride(), weights.positive};
}

/// The terms of binary_cross_entropy(): a row has one logit and one label.
template <class T>
struct BinaryTerms {
  using A = Acc<T>;
  View<const T, 2> logits;
  View<const A, 2> label;
  SampleFactor<A> factor;
  HCTR_HD static constexpr int64_t per_row() { return 1; }
  HCTR_HD CrossEntropyTerm<A> operator()(int64_t b, int64_t) const {
    const A y = *label.row(b);
    return {static_cast<A>(*logits.row(b)), y, factor(b, y)};
  }
  HCTR_HD static void write_gradient(T* d_logits, int64_t, A gradient) { *d_logits = static_cast<T>(gradient); }
};

/// The terms of two_class_cross_entropy(): a row has two logits and one label. The row's term uses the difference of
/// the logits.
template <class T>
struct TwoClassTerms {
  using A = Acc<T>;
  View<const T, 2> logits;
  View<const A, 2> label;
  SampleFactor<A> factor;
  HCTR_HD static constexpr int64_t per_row() { return 1; }
  HCTR_HD CrossEntropyTerm<A> operator()(int64_t b, int64_t) const {
    const T* z = logits.row(b);
    const A y = *label.row(b) < A(0.5) ? A(0) : A(1);
    return {static_cast<A>(z[1]) - static_cast<A>(z[0]), y, factor(b, y)};
  }
  HCTR_HD static void write_gradient(T* d_logits, int64_t, A gradient) {
    d_logits[0] = static_cast<T>(-gradient);
    d_logits[1] = static_cast<T>(gradient);
  }
};

/// The terms of multi_cross_entropy(): a row has one logit per label. weights[j] is the weight of label j.
template <class T, class Weights>
struct MultiTerms {
  using A = Acc<T>;
  View<const T, 2> logits;
  View<const A, 2> label;
  Weights weights;
  SampleFactor<A> factor;
  HCTR_HD int64_t per_row() const { return logits.size(1); }
  HCTR_HD CrossEntropyTerm<A> operator()(int64_t b, int64_t j) const {
    const A y = label.row(b)[j];
    return {static_cast<A>(logits.row(b)[j]), y, static_cast<A>(weights[j]) * factor(b, y), !(y < A(-0.5))};
  }
  HCTR_HD static void write_gradient(T* d_logits, int64_t j, A gradient) { d_logits[j] = static_cast<T>(gradient); }
};

/// 1 / n, or 0 if n is 0, so that an empty batch has loss 0.
template <class A>
HCTR_HD A inverse_count(int32_t n) {
  return n > 0 ? 1 / static_cast<A>(n) : A(0);
}

}  // namespace hctr::ops
