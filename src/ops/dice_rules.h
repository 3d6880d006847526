// The formulas of ops/dice.h, shared by every device.
#pragma once

#include <cmath>

#include "device/tensor.h"
#include "ops/batch_norm_rules.h"

namespace hctr::ops {

/// One element of dice_start.
template <class T>
HCTR_HD Acc<T> start_of(const View<const T, 2>& x, int64_t rows, int64_t j) {
  if (j == x.size(1)) return static_cast<Acc<T>>(rows);
  return rows > 0 ? static_cast<Acc<T>>(rows) * static_cast<Acc<T>>(x.data[j]) : Acc<T>(0);
}

/// From the sums of a column in `batch` to its statistics.
template <class A>
HCTR_HD void column_statistics(const A* start, int64_t n, int64_t j, A eps, A* batch) {
  const Pair<A> moments = mean_and_variance(batch[j], batch[n + j], start[n], unbiased(start[j], start[n], A(0)));
  batch[j] = moments.first;
  batch[n + j] = 1 / std::sqrt(moments.second + eps);
}

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
  const A *start, *d_sums;
  const StepState* state;
  int64_t rows, valid = 0;
  A share = 0;
  HCTR_HD void prepare() {
    valid = valid_rows(*state, rows);
    share = start[dice.n] > 0 ? 1 / start[dice.n] : A(0);
  }
  HCTR_HD A operator()(int64_t b, int64_t j, A x, A dy) const {
    if (b >= valid) return A(0);
    const A through = dice.at_hat(j, x, dy) - (d_sums[j] + dice.hat(j, x) * d_sums[dice.n + j]) * share;
    return dy * dice.slope(j, x) + dice.batch[dice.n + j] * through;
  }
};

}  // namespace hctr::ops
