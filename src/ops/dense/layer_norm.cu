// Layer normalization kernels. A warp processes one row at a time, and rereads the row from the cache for each pass.
#include "ops/dense/layer_norm.h"

#include "ops/common/columns.cuh"
#include "ops/common/reduce.cuh"
#include "ops/dense/layer_norm_rules.h"

namespace hctr::ops {
namespace {

template <class T>
__global__ void layer_norm_kernel(LastRows<const T> x, const T* gamma, const T* beta, float eps, float* stats,
                                  LastRows<T> y) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto n = static_cast<float>(x.width);
  for (int64_t r = cuda::thread_index() / 32; r < x.count; r += cuda::thread_count() / 32) {
    const T* row = x.row(r);
    float mean = 0, variance = 0;
    for (int64_t j = lane; j < x.width; j += 32) mean += static_cast<float>(row[j]);
    mean = cuda::warp_sum(mean) / n;
    for (int64_t j = lane; j < x.width; j += 32) {
      const float d = static_cast<float>(row[j]) - mean;
      variance += d * d;
    }
    const float rstd = 1 / std::sqrt(cuda::warp_sum(variance) / n + eps);
    if (lane == 0) {
      stats[2 * r] = mean;
      stats[2 * r + 1] = rstd;
    }
    T* to = y.row(r);
    for (int64_t j = lane; j < x.width; j += 32)
      to[j] = static_cast<T>(static_cast<float>(gamma[j]) * ((static_cast<float>(row[j]) - mean) * rstd) +
                             static_cast<float>(beta[j]));
  }
}

template <class T>
__global__ void layer_norm_backward_kernel(LastRows<const T> x, LastRows<const T> dy, const T* gamma,
                                           const float* stats, LastRows<T> dx) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto n = static_cast<float>(x.width);
  for (int64_t r = cuda::thread_index() / 32; r < x.count; r += cuda::thread_count() / 32) {
    const T *row = x.row(r), *gradient = dy.row(r);
    const float mean = stats[2 * r], rstd = stats[2 * r + 1];
    float sum = 0, sum_hat = 0;
    for (int64_t j = lane; j < x.width; j += 32) {
      const float g = static_cast<float>(gamma[j]) * static_cast<float>(gradient[j]);
      sum += g;
      sum_hat += g * ((static_cast<float>(row[j]) - mean) * rstd);
    }
    sum = cuda::warp_sum(sum) / n;
    sum_hat = cuda::warp_sum(sum_hat) / n;
    T* to = dx.row(r);
    for (int64_t j = lane; j < x.width; j += 32) {
      const float g = static_cast<float>(gamma[j]) * static_cast<float>(gradient[j]);
      to[j] = static_cast<T>(rstd * (g - sum - (static_cast<float>(row[j]) - mean) * rstd * sum_hat));
    }
  }
}

}  // namespace

void cuda::layer_norm(Context& ctx, Tensor x, Tensor gamma, Tensor beta, float eps, Tensor stats, Tensor y) {
  dispatch_float(x.dtype(), [&]<class T>() {
    const LastRows<const T> from = last_rows<const T>(x);
    launch(ctx, "layer_norm", grid_for(from.count * 32), layer_norm_kernel<T>, from, gamma.data<const T>(),
           beta.data<const T>(), eps, stats.data<float>(), last_rows<T>(y));
  });
}

void cuda::layer_norm_backward(Context& ctx, Tensor x, Tensor dy, Tensor gamma, Tensor stats, Tensor dx) {
  dispatch_float(x.dtype(), [&]<class T>() {
    const LastRows<const T> from = last_rows<const T>(x);
    launch(ctx, "layer_norm_backward", grid_for(from.count * 32), layer_norm_backward_kernel<T>, from,
           last_rows<const T>(dy), gamma.data<const T>(), stats.data<const float>(), last_rows<T>(dx));
  });
}

void cuda::layer_norm_weight_gradients(Context& ctx, Tensor x, Tensor dy, Tensor stats, Tensor scratch, Tensor d_gamma,
                                       Tensor d_beta) {
  dispatch_float(x.dtype(), [&]<class T>() {
    const LayerNormWeightSums<T> f{last_rows<const T>(x), last_rows<const T>(dy), stats.data<const float>()};
    sum_columns<T>(ctx, "layer_norm_weight_gradients", nullptr, f.x.count, f.x.width, f, scratch, d_beta.data<float>(),
                   d_gamma.data<float>());
  });
}

}  // namespace hctr::ops
