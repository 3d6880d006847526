// Batch normalization kernels. Sums and maps over columns use ops/common/columns.cuh; one block computes the
// statistics, because there are at most a few thousand columns.
#include "ops/dense/batch_norm.h"

#include "ops/common/columns.cuh"
#include "ops/dense/batch_norm_rules.h"

namespace hctr::ops {
namespace {

constexpr int kStatisticsThreads = 1024;

__global__ void count_rows_kernel(const StepState* state, int64_t rows, float* count) {
  *count = static_cast<float>(valid_rows(*state, rows));
}

__global__ void batch_norm_statistics_kernel(const float* sums, int64_t n, float factor, float eps, float* mean,
                                             float* var, float* weight, float* batch) {
  const float before = *weight;
  for (int64_t j = threadIdx.x; j < n; j += kStatisticsThreads)
    update_statistics(sums, n, j, factor, eps, before, mean, var, batch);
  __syncthreads();  // every thread has read *weight
  if (threadIdx.x == 0 && sums[2 * n] > 0) *weight = (1 - factor) * before + factor;
}

__global__ void batch_norm_running_kernel(const float* mean, const float* var, const float* weight, int64_t n,
                                          float eps, float* batch) {
  for (int64_t j = threadIdx.x; j < n; j += kStatisticsThreads) {
    batch[j] = unbiased(mean[j], *weight, 0.0f);
    batch[n + j] = 1 / std::sqrt(unbiased(var[j], *weight, 1.0f) + eps);
  }
}

}  // namespace

void cuda::batch_norm_sums(Context& ctx, Tensor x, RunningStatistics running, Tensor scratch, Tensor sums) {
  const int64_t n = x.dim(1);
  float* to = sums.data<float>();
  dispatch_float(x.dtype(), [&]<class T>() {
    sum_columns<T>(
        ctx, "batch_norm_sums", ctx.state(), x.rows(), n,
        ShiftedSums<T>{x.matrix<const T>(), running.mean.data<const float>(), running.weight.data<const float>()},
        scratch, to, to + n);
  });
  launch(ctx, "count_rows", Grid{1, 1, 0}, count_rows_kernel, ctx.state(), x.rows(), to + 2 * n);
}

void cuda::batch_norm_statistics(Context& ctx, Tensor sums, float factor, float eps, RunningStatistics running,
                                 Tensor batch) {
  launch(ctx, "batch_norm_statistics", Grid{1, kStatisticsThreads, 0}, batch_norm_statistics_kernel,
         sums.data<const float>(), batch.dim(1), factor, eps, running.mean.data<float>(), running.var.data<float>(),
         running.weight.data<float>(), batch.data<float>());
}

void cuda::batch_norm_running(Context& ctx, RunningStatistics running, float eps, Tensor batch) {
  launch(ctx, "batch_norm_running", Grid{1, kStatisticsThreads, 0}, batch_norm_running_kernel,
         running.mean.data<const float>(), running.var.data<const float>(), running.weight.data<const float>(),
         batch.dim(1), eps, batch.data<float>());
}

void cuda::batch_norm_apply(Context& ctx, Tensor x, Tensor batch, Tensor gamma, Tensor beta, Tensor y) {
  dispatch_float(x.dtype(), [&]<class T>() {
    map_columns<Normalize<T>, T, 1>(ctx, "batch_norm_apply",
                                    {statistics_of<float>(batch), gamma.data<const T>(), beta.data<const T>()},
                                    {{x.matrix<const T>()}}, y.matrix<T>());
  });
}

void cuda::batch_norm_backward_sums(Context& ctx, Tensor x, Tensor dy, Tensor batch, Tensor scratch, Tensor d_sums) {
  const int64_t n = x.dim(1);
  float* to = d_sums.data<float>();
  dispatch_float(x.dtype(), [&]<class T>() {
    sum_columns<T>(ctx, "batch_norm_backward_sums", ctx.state(), x.rows(), n, batch_norm_gradient_sums<T>(x, dy, batch),
                   scratch, to, to + n);
  });
}

void cuda::batch_norm_backward(Context& ctx, Tensor x, Tensor dy, Tensor batch, Tensor gamma, Tensor sums,
                               Tensor d_sums, Tensor dx) {
  dispatch_float(x.dtype(), [&]<class T>() {
    map_columns<NormalizeBackward<T>, T, 2>(ctx, "batch_norm_backward",
                                            batch_norm_backward_of<T>(x, batch, gamma, sums, d_sums, ctx.state()),
                                            {{x.matrix<const T>(), dy.matrix<const T>()}}, dx.matrix<T>());
  });
}

}  // namespace hctr::ops
