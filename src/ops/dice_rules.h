// The formulas of ops/dice.h, shared by every device.
#pragma once

#include <cmath>

#include "device/tensor.h"
#include "ops/batch_norm_rules.h"

namespace hctr::ops {

/// Sums of x - x_0 and its square: the first row is near enough to the mean to keep the variance exact.
template <class T>
struct SumsFromFirstRow {
  View<const T, 2> x;
  HCTR_HD Acc<T> shift(int64_t j) const { return x.size(0) > 0 ? static_cast<Acc<T>>(x.data[j]) : Acc<T>(0); }
  HCTR_HD Pair<Acc<T>> operator()(int64_t b, int64_t j) const {
    const Acc<T> d = static_cast<Acc<T>>(x.row(b)[j]) - shift(j);
    return {d, d * d};
  }
};

template <class A>
HCTR_HD A sigmoid_of(A x) {
  return 1 / (1 + std::exp(-x));
}

template <class T>
struct Dice {
  using A = Acc<T>;
  A alpha;
  const A* batch;
  int64_t n;
  HCTR_HD A hat(int64_t j, A x) const { return (x - batch[j]) * batch[n + j]; }
  /// The gradient at hat.
  HCTR_HD A at_hat(int64_t j, A x, A dy) const {
    const A p = sigmoid_of(hat(j, x));
    return dy * x * (1 - alpha) * p * (1 - p);
  }
  HCTR_HD A slope(int64_t j, A x) const {
    const A p = sigmoid_of(hat(j, x));
    return p + (1 - p) * alpha;
  }
  HCTR_HD A operator()(int64_t, int64_t j, A x) const { return slope(j, x) * x; }
};

template <class T>
struct DiceBackwardSums {
  Dice<T> dice;
  View<const T, 2> x, dy;
  HCTR_HD Pair<Acc<T>> operator()(int64_t b, int64_t j) const {
    const auto value = static_cast<Acc<T>>(x.row(b)[j]);
    const Acc<T> g = dice.at_hat(j, value, static_cast<Acc<T>>(dy.row(b)[j]));
    return {g, g * dice.hat(j, value)};
  }
};

template <class T>
struct DiceBackward {
  using A = Acc<T>;
  Dice<T> dice;
  const A* d_sums;
  const StepState* state;
  int64_t rows, valid = 0;
  A share = 0;
  HCTR_HD void prepare() {
    valid = valid_rows(*state, rows);
    share = valid > 0 ? 1 / static_cast<A>(valid) : A(0);
  }
  HCTR_HD A operator()(int64_t b, int64_t j, A x, A dy) const {
    if (b >= valid) return A(0);
    const A through = dice.at_hat(j, x, dy) - (d_sums[j] + dice.hat(j, x) * d_sums[dice.n + j]) * share;
    return dy * dice.slope(j, x) + dice.batch[dice.n + j] * through;
  }
};

}  // namespace hctr::ops
