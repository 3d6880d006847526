// Dice kernels. Sums and maps over columns use ops/common/columns.cuh.
#include "ops/dense/dice.h"

#include "ops/common/columns.cuh"
#include "ops/dense/dice_rules.h"

namespace hctr::ops {
namespace {

template <class T>
__global__ void dice_start_kernel(const StepState* state, View<const T, 2> x, float* start) {
  const int64_t rows = valid_rows(*state, x.size(0));
  for (int64_t j = cuda::thread_index(); j <= x.size(1); j += cuda::thread_count()) start[j] = start_of(x, rows, j);
}

__global__ void dice_statistics_kernel(const float* start, int64_t n, float eps, float* batch) {
  for (int64_t j = cuda::thread_index(); j < n; j += cuda::thread_count()) column_statistics(start, n, j, eps, batch);
}

}  // namespace

void cuda::dice_start(Context& ctx, Tensor x, Tensor start) {
  dispatch_float(x.dtype(), [&]<class T>() {
    launch(ctx, "dice_start", grid_for(start.dim(0)), dice_start_kernel<T>, ctx.state(), x.matrix<const T>(),
           start.data<float>());
  });
}

void cuda::dice_sums(Context& ctx, Tensor x, Tensor start, Tensor scratch, Tensor sums) {
  const int64_t n = x.dim(1);
  const float* from = start.data<const float>();
  float* to = sums.data<float>();
  dispatch_float(x.dtype(), [&]<class T>() {
    sum_columns<T>(ctx, "dice_sums", ctx.state(), x.rows(), n, ShiftedSums<T>{x.matrix<const T>(), from, from + n},
                   scratch, to, to + n);
  });
}

void cuda::dice_statistics(Context& ctx, Tensor start, float eps, Tensor batch) {
  const int64_t n = batch.dim(1);
  launch(ctx, "dice_statistics", grid_for(n), dice_statistics_kernel, start.data<const float>(), n, eps,
         batch.data<float>());
}

void cuda::dice(Context& ctx, Tensor x, float alpha, Tensor batch, Tensor y) {
  dispatch_float(x.dtype(), [&]<class T>() {
    map_columns<Dice<T>, T, 1>(ctx, "dice", dice_of<T>(alpha, batch), {{x.matrix<const T>()}}, y.matrix<T>());
  });
}

void cuda::dice_backward_sums(Context& ctx, Tensor x, Tensor dy, float alpha, Tensor batch, Tensor scratch,
                              Tensor d_sums) {
  const int64_t n = x.dim(1);
  float* to = d_sums.data<float>();
  dispatch_float(x.dtype(), [&]<class T>() {
    sum_columns<T>(ctx, "dice_backward_sums", ctx.state(), x.rows(), n, dice_gradient_sums<T>(x, dy, alpha, batch),
                   scratch, to, to + n);
  });
}

void cuda::dice_backward(Context& ctx, Tensor x, Tensor dy, float alpha, Tensor start, Tensor batch, Tensor d_sums,
                         Tensor dx) {
  dispatch_float(x.dtype(), [&]<class T>() {
    map_columns<DiceBackward<T>, T, 2>(ctx, "dice_backward",
                                       dice_backward_of<T>(x, alpha, start, batch, d_sums, ctx.state()),
                                       {{x.matrix<const T>(), dy.matrix<const T>()}}, dx.matrix<T>());
  });
}

}  // namespace hctr::ops
