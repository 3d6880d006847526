// The formulas of ops/dense/dice.h, shared by every device.
#pragma once

#include "ops/common/activation_rules.h"
#include "ops/dense/batch_statistics.h"

namespace hctr::ops {

/// Computes dice_start() for element j.
template <class T>
HCTR_HD Acc<T> start_of(const View<const T, 2>& x, int64_t rows, int64_t j) {
  if (j == x.size(1)) return static_cast<Acc<T>>(rows);
  return rows > 0 ? static_cast<Acc<T>>(rows) * static_cast<Acc<T>>(x.data[j]) : Acc<T>(0);
}

/// Replaces the sums of column j in `batch` with the statistics.
template <class A>
HCTR_HD void column_statistics(const A* start, int64_t n, int64_t j, A eps, A* batch) {
  const Pair<A> moments = mean_and_variance(batch[j], batch[n + j], start[n], unbiased(start[j], start[n], A(0)));
  batch[j] = moments.first;
  batch[n + j] = 1 / std::sqrt(moments.second + eps);
}

template <class T>
struct Dice {
  using A = Acc<T>;
  A alpha;
  ColumnStatistics<A> statistics;
  HCTR_HD A step(int64_t j, A x) const { return Sigmoid::value(statistics.normalized(j, x)); }
  HCTR_HD A slope(int64_t j, A x) const {
    const A p = step(j, x);
    return p + (1 - p) * alpha;
  }
  HCTR_HD A operator()(int64_t, int64_t j, A x) const { return slope(j, x) * x; }
};

/// Template argument Gradient of GradientSums: returns the gradient of hat.
template <class T>
struct DiceGradient {
  using A = Acc<T>;
  Dice<T> dice;
  HCTR_HD A operator()(int64_t j, A x, A dy) const {
    const A p = dice.step(j, x);
    return dy * x * (1 - dice.alpha) * p * (1 - p);
  }
};

template <class T>
struct DiceBackward {
  using A = Acc<T>;
  Dice<T> dice;
  CentredGradient<A> centred;
  HCTR_HD void prepare() { centred.prepare(); }
  HCTR_HD A operator()(int64_t b, int64_t j, A x, A dy) const {
    if (!centred.counts(b)) return A(0);
    const A at_normalized = centred(j, x, DiceGradient<T>{dice}(j, x, dy));
    return dy * dice.slope(j, x) + dice.statistics.inverse_deviation(j) * at_normalized;
  }
};

/// The following functions build the functors from tensors, for both devices.
template <class T>
Dice<T> dice_of(float alpha, const Tensor& batch) {
  return {static_cast<Acc<T>>(alpha), statistics_of<Acc<T>>(batch)};
}
template <class T>
GradientSums<T, DiceGradient<T>> dice_gradient_sums(const Tensor& x, const Tensor& dy, float alpha,
                                                    const Tensor& batch) {
  const Dice<T> dice = dice_of<T>(alpha, batch);
  return {dice.statistics, {dice}, x.matrix<const T>(), dy.matrix<const T>()};
}
template <class T>
DiceBackward<T> dice_backward_of(const Tensor& x, float alpha, const Tensor& start, const Tensor& batch,
                                 const Tensor& d_sums, const StepState* state) {
  using A = Acc<T>;
  const Dice<T> dice = dice_of<T>(alpha, batch);
  return {dice, {dice.statistics, start.data<const A>() + batch.dim(1), d_sums.data<const A>(), state, x.rows()}};
}

}  // namespace hctr::ops
