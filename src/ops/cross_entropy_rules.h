// The formulas of ops/cross_entropy.h, shared by every device: the term that all losses sum, and which terms each loss
// reads from its tensors.
#pragma once

#include <cmath>

#include "device/tensor.h"
#include "ops/activation_rules.h"

namespace hctr::ops {

/// One summand of a loss: a logit, its target in [0, 1] and its weight.
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
  /// `factor` times the derivative of loss().
  HCTR_HD A gradient(A factor) const { return factor * weight * (probability() - target); }
};

/// One logit and one label in a row.
template <class T>
struct BinaryTerms {
  using A = Acc<T>;
  View<const T, 2> logits;
  View<const A, 2> label;
  HCTR_HD static constexpr int64_t per_row() { return 1; }
  HCTR_HD CrossEntropyTerm<A> operator()(int64_t b, int64_t) const {
    return {static_cast<A>(*logits.row(b)), *label.row(b), A(1)};
  }
  HCTR_HD static void write_gradient(T* d_logits, int64_t, A gradient) { *d_logits = static_cast<T>(gradient); }
};

/// Two logits and one label in a row: a term of their difference.
template <class T>
struct TwoClassTerms {
  using A = Acc<T>;
  View<const T, 2> logits;
  View<const A, 2> label;
  HCTR_HD static constexpr int64_t per_row() { return 1; }
  HCTR_HD CrossEntropyTerm<A> operator()(int64_t b, int64_t) const {
    const T* z = logits.row(b);
    return {static_cast<A>(z[1]) - static_cast<A>(z[0]), *label.row(b) < A(0.5) ? A(0) : A(1), A(1)};
  }
  HCTR_HD static void write_gradient(T* d_logits, int64_t, A gradient) {
    d_logits[0] = static_cast<T>(-gradient);
    d_logits[1] = static_cast<T>(gradient);
  }
};

/// As many logits as labels in a row, with a weight for each label. Weights is indexed by the label.
template <class T, class Weights>
struct MultiTerms {
  using A = Acc<T>;
  View<const T, 2> logits;
  View<const A, 2> label;
  Weights weights;
  HCTR_HD int64_t per_row() const { return logits.size(1); }
  HCTR_HD CrossEntropyTerm<A> operator()(int64_t b, int64_t j) const {
    const A y = label.row(b)[j];
    return {static_cast<A>(logits.row(b)[j]), y, static_cast<A>(weights[j]), !(y < A(-0.5))};
  }
  HCTR_HD static void write_gradient(T* d_logits, int64_t j, A gradient) { d_logits[j] = static_cast<T>(gradient); }
};

/// 1 / n; 0 when there are no samples, so that an empty batch has loss 0.
template <class A>
HCTR_HD A inverse_count(int32_t n) {
  return n > 0 ? 1 / static_cast<A>(n) : A(0);
}

}  // namespace hctr::ops
