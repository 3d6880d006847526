// Mean and variance of columns over a batch, and their gradients: formulas shared by batch normalization and Dice, on
// every device.
#pragma once

#include <cmath>

#include "core/device/tensor.h"
#include "ops/common/columns.h"
#include "ops/common/valid_rows.h"

namespace hctr::ops {

/// Removes the start-up bias of a running average; returns `otherwise` before the first batch.
template <class A>
HCTR_HD A unbiased(A average, A weight, A otherwise) {
  return weight > 0 ? average / weight : otherwise;
}

/// Functor that returns x - shift and (x - shift)^2 of an element, which are then summed over each column. shift =
/// mean[j] / weight.
template <class T>
struct ShiftedSums {
  View<const T, 2> x;
  const Acc<T>*mean, *weight;
  HCTR_HD Pair<Acc<T>> operator()(int64_t b, int64_t j) const {
    const Acc<T> d = static_cast<Acc<T>>(x.row(b)[j]) - unbiased(mean[j], *weight, Acc<T>(0));
    return {d, d * d};
  }
};

/// Mean and biased variance of `count` rows from the sums of x - shift and (x - shift)^2.
template <class A>
HCTR_HD Pair<A> mean_and_variance(A sum, A squares, A count, A shift) {
  if (!(count > 0)) return {shift, A(0)};
  const A d = sum / count, variance = squares / count - d * d;
  return {shift + d, variance > 0 ? variance : A(0)};
}

/// The statistics of n columns: values[j] = mean, values[n + j] = 1 / sqrt(variance + eps).
template <class A>
struct ColumnStatistics {
  const A* values;
  int64_t n;
  HCTR_HD A inverse_deviation(int64_t j) const { return values[n + j]; }
  HCTR_HD A normalized(int64_t j, A x) const { return (x - values[j]) * values[n + j]; }
};

/// Reads the statistics from `batch` [2, n].
template <class A>
ColumnStatistics<A> statistics_of(const Tensor& batch) {
  return {batch.data<const A>(), batch.dim(1)};
}

/// Functor that returns g and g * xhat of an element, which are then summed over each column. xhat = normalized(x);
/// gradient(j, x, dy) returns g, the gradient of xhat.
template <class T, class Gradient>
struct GradientSums {
  ColumnStatistics<Acc<T>> statistics;
  Gradient gradient;
  View<const T, 2> x, dy;
  HCTR_HD Pair<Acc<T>> operator()(int64_t b, int64_t j) const {
    const auto value = static_cast<Acc<T>>(x.row(b)[j]);
    const Acc<T> g = gradient(j, value, static_cast<Acc<T>>(dy.row(b)[j]));
    return {g, g * statistics.normalized(j, value)};
  }
};

/// Functor that returns g - (d_sums[0] + xhat * d_sums[1]) / count: g is the gradient of xhat, and d_sums are the sums
/// of GradientSums over `count` rows. The gradient of x, including the gradients through mean and variance, is
/// inverse_deviation times this value.
template <class A>
struct CentredGradient {
  ColumnStatistics<A> statistics;
  const A *count, *d_sums;
  const StepState* state;
  int64_t rows, valid = 0;
  A inverse_count = 0;
  HCTR_HD void prepare() {
    valid = valid_rows(*state, rows);
    inverse_count = *count > 0 ? 1 / *count : A(0);
  }
  /// Whether row b contains a sample; dx is 0 in other rows.
  HCTR_HD bool counts(int64_t b) const { return b < valid; }
  HCTR_HD A operator()(int64_t j, A x, A g) const {
    return g - (d_sums[j] + statistics.normalized(j, x) * d_sums[statistics.n + j]) * inverse_count;
  }
};

}  // namespace hctr::ops
