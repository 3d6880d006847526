// Sums and maps over columns are those of ops/columns.cuh.
#include "ops/dice.h"

#include "ops/columns.cuh"
#include "ops/dice_rules.h"

namespace hctr::ops {
namespace {

/// From the sums in `batch` to the statistics, in place.
template <class T>
__global__ void dice_statistics_kernel(const StepState* state, SumsFromFirstRow<T> f, float eps, float* batch) {
  const int64_t n = f.x.size(1);
  const auto rows = static_cast<float>(valid_rows(*state, f.x.size(0)));
  for (int64_t j = cuda::thread_index(); j < n; j += cuda::thread_count()) {
    const Pair<float> moments = mean_and_variance(batch[j], batch[n + j], rows, f.shift(j));
    batch[j] = moments.first;
    batch[n + j] = 1 / std::sqrt(moments.second + eps);
  }
}

template <class T>
Dice<T> dice_of(float alpha, const Tensor& batch) {
  return {alpha, batch.data<const float>(), batch.dim(1)};
}

}  // namespace

void cuda::dice_statistics(Context& ctx, Tensor x, float eps, Tensor scratch, Tensor batch) {
  const int64_t n = x.dim(1);
  float* to = batch.data<float>();
  dispatch_float(x.dtype(), [&]<class T>() {
    const SumsFromFirstRow<T> f{x.matrix<const T>()};
    sum_columns<T>(ctx, "dice_sums", ctx.state(), x.rows(), n, f, scratch, to, to + n);
    launch(ctx, "dice_statistics", grid_for(n), dice_statistics_kernel<T>, ctx.state(), f, eps, to);
  });
}

void cuda::dice(Context& ctx, Tensor x, float alpha, Tensor batch, Tensor y) {
  dispatch_float(x.dtype(), [&]<class T>() {
    map_columns<Dice<T>, T, 1>(ctx, "dice", dice_of<T>(alpha, batch), {{x.matrix<const T>()}}, y.matrix<T>());
  });
}

void cuda::dice_backward_sums(Context& ctx, Tensor x, Tensor dy, float alpha, Tensor batch, Tensor scratch, Tensor d_sums) {
  const int64_t n = x.dim(1);
  float* to = d_sums.data<float>();
  dispatch_float(x.dtype(), [&]<class T>() {
    sum_columns<T>(ctx, "dice_backward_sums", ctx.state(), x.rows(), n,
                   DiceBackwardSums<T>{dice_of<T>(alpha, batch), x.matrix<const T>(), dy.matrix<const T>()}, scratch, to, to + n);
  });
}

void cuda::dice_backward(Context& ctx, Tensor x, Tensor dy, float alpha, Tensor batch, Tensor d_sums, Tensor dx) {
  dispatch_float(x.dtype(), [&]<class T>() {
    map_columns<DiceBackward<T>, T, 2>(ctx, "dice_backward", {dice_of<T>(alpha, batch), d_sums.data<const float>(), ctx.state(), x.rows()},
                                       {{x.matrix<const T>(), dy.matrix<const T>()}}, dx.matrix<T>());
  });
}

}  // namespace hctr::ops
