// The formulas of ops/dense/batch_norm.h, shared by every device.
#pragma once

#include "ops/dense/batch_statistics.h"

namespace hctr::ops {

/// Computes batch_norm_statistics() for column j. `weight` is the running weight before this batch.
template <class A>
HCTR_HD void update_statistics(const A* sums, int64_t n, int64_t j, A factor, A eps, A weight, A* mean, A* var,
                               A* batch) {
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
  ColumnStatistics<Acc<T>> statistics;
  const T *gamma, *beta;
  HCTR_HD Acc<T> operator()(int64_t, int64_t j, Acc<T> x) const {
    return static_cast<Acc<T>>(gamma[j]) * statistics.normalized(j, x) + static_cast<Acc<T>>(beta[j]);
  }
};

/// Template argument Gradient of GradientSums: returns the gradient of xhat without the factor gamma.
struct OutputGradient {
  template <class A>
  HCTR_HD A operator()(int64_t, A, A dy) const {
    return dy;
  }
};

template <class T>
struct NormalizeBackward {
  using A = Acc<T>;
  CentredGradient<A> centred;
  const T* gamma;
  HCTR_HD void prepare() { centred.prepare(); }
  HCTR_HD A operator()(int64_t b, int64_t j, A x, A dy) const {
    if (!centred.counts(b)) return A(0);
    return static_cast<A>(gamma[j]) * centred.statistics.inverse_deviation(j) * centred(j, x, dy);
  }
};

/// The following functions build the functors from tensors, for both devices.
template <class T>
GradientSums<T, OutputGradient> batch_norm_gradient_sums(const Tensor& x, const Tensor& dy, const Tensor& batch) {
  return {statistics_of<Acc<T>>(batch), {}, x.matrix<const T>(), dy.matrix<const T>()};
}
template <class T>
NormalizeBackward<T> batch_norm_backward_of(const Tensor& x, const Tensor& batch, const Tensor& gamma,
                                            const Tensor& sums, const Tensor& d_sums, const StepState* state) {
  using A = Acc<T>;
  return {{statistics_of<A>(batch), sums.data<const A>() + 2 * x.dim(1), d_sums.data<const A>(), state, x.rows()},
          gamma.data<const T>()};
}

}  // namespace hctr::ops
