// The formulas of ops/batch_norm.h, shared by every device.
#pragma once

#include <cmath>

#include "device/tensor.h"
#include "ops/columns.h"
#include "ops/valid_rows.h"

namespace hctr::ops {

/// A running average without its bias to the start; `otherwise` before any batch.
template <class A>
HCTR_HD A unbiased(A average, A weight, A otherwise) {
  return weight > 0 ? average / weight : otherwise;
}

template <class T>
struct ShiftedSums {
  View<const T, 2> x;
  const Acc<T>*mean, *weight;
  HCTR_HD Pair<Acc<T>> operator()(int64_t b, int64_t j) const {
    const Acc<T> d = static_cast<Acc<T>>(x.row(b)[j]) - unbiased(mean[j], *weight, Acc<T>(0));
    return {d, d * d};
  }
};

/// Mean and biased variance from sums of x - shift and its squares over `count` rows.
template <class A>
HCTR_HD Pair<A> mean_and_variance(A sum, A squares, A count, A shift) {
  if (!(count > 0)) return {shift, A(0)};
  const A d = sum / count, variance = squares / count - d * d;
  return {shift + d, variance > 0 ? variance : A(0)};
}

/// One column of batch_norm_statistics. `weight` is that before this batch.
template <class A>
HCTR_HD void take_in_column(const A* sums, int64_t n, int64_t j, A factor, A eps, A weight, A* mean, A* var, A* batch) {
  const A count = sums[2 * n];
  const Pair<A> of_batch = mean_and_variance(sums[j], sums[n + j], count, unbiased(mean[j], weight, A(0)));
  batch[j] = of_batch.first;
  batch[n + j] = 1 / std::sqrt(of_batch.second + eps);
  if (!(count > 0)) return;
  const A unbiased_variance = count > 1 ? of_batch.second * (count / (count - 1)) : of_batch.second;
  mean[j] = (1 - factor) * mean[j] + factor * of_batch.first;
  var[j] = (1 - factor) * var[j] + factor * unbiased_variance;
}

template <class T>
struct Normalize {
  const Acc<T>* batch;
  int64_t n;
  const T *gamma, *beta;
  HCTR_HD Acc<T> operator()(int64_t, int64_t j, Acc<T> x) const {
    return static_cast<Acc<T>>(gamma[j]) * ((x - batch[j]) * batch[n + j]) + static_cast<Acc<T>>(beta[j]);
  }
};

template <class T>
struct BackwardSums {
  View<const T, 2> x, dy;
  const Acc<T>* batch;
  HCTR_HD Pair<Acc<T>> operator()(int64_t b, int64_t j) const {
    const auto g = static_cast<Acc<T>>(dy.row(b)[j]);
    return {g, g * ((static_cast<Acc<T>>(x.row(b)[j]) - batch[j]) * batch[x.size(1) + j])};
  }
};

template <class T>
struct NormalizeBackward {
  using A = Acc<T>;
  const A* batch;
  int64_t n;
  const T* gamma;
  const A *sums, *d_sums;
  const StepState* state;
  int64_t rows, valid = 0;
  A share = 0;
  HCTR_HD void prepare() {
    valid = valid_rows(*state, rows);
    share = sums[2 * n] > 0 ? 1 / sums[2 * n] : A(0);
  }
  HCTR_HD A operator()(int64_t b, int64_t j, A x, A dy) const {
    if (b >= valid) return A(0);
    const A hat = (x - batch[j]) * batch[n + j];
    return static_cast<A>(gamma[j]) * batch[n + j] * (dy - (d_sums[j] + hat * d_sums[n + j]) * share);
  }
};

}  // namespace hctr::ops
