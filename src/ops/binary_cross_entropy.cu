// A batch is a few thousand rows: one block reads them all, each thread sums its rows in double, and a tree sums the
// threads, so the order never changes.
#include "ops/binary_cross_entropy.h"

#include "ops/binary_cross_entropy_rules.h"
#include "ops/element_loops.cuh"
#include "ops/reduce.cuh"

namespace hctr::ops {
namespace {

constexpr int kThreads = 1024;

template <class T>
__global__ void binary_cross_entropy_kernel(const StepState* state, View<const T, 2> logits, View<const float, 2> label,
                                            float* loss, View<float, 2> probability) {
  const int64_t batch = logits.size(0), valid = state->valid_samples;
  double sum = 0;
#pragma unroll 4
  for (int64_t b = threadIdx.x; b < batch; b += kThreads) {
    const float z = static_cast<float>(*logits.row(b));
    *probability.row(b) = probability_of(z);
    if (b < valid) sum += static_cast<double>(cross_entropy(z, *label.row(b)));
  }
  sum = cuda::block_sum<kThreads>(sum);
  if (threadIdx.x == 0) *loss = static_cast<float>(sum * share_of_one<double>(state->global_samples));
}

template <class T>
__global__ void binary_cross_entropy_backward_kernel(const StepState* state, View<const T, 2> logits,
                                                     View<const float, 2> label, float weight, View<T, 2> d_logits) {
  const int64_t batch = logits.size(0), valid = state->valid_samples;
  const float factor = weight * state->loss_scale * share_of_one<float>(state->global_samples);
  for (int64_t b = cuda::thread_index(); b < batch; b += cuda::thread_count()) {
    const float gradient = factor * (probability_of(static_cast<float>(*logits.row(b))) - *label.row(b));
    *d_logits.row(b) = static_cast<T>(b < valid ? gradient : 0.0f);
  }
}

}  // namespace

void cuda::binary_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability) {
  dispatch_float(logits.dtype(), [&]<class T>() {
    launch(ctx, "binary_cross_entropy", Grid{1, kThreads, 0}, binary_cross_entropy_kernel<T>, ctx.state(),
           logits.matrix<const T>(), label.matrix<const float>(), loss.data<float>(), probability.matrix<float>());
  });
}

void cuda::binary_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, Tensor d_logits, float weight) {
  dispatch_float(logits.dtype(), [&]<class T>() {
    launch(ctx, "binary_cross_entropy_backward", grid_for(logits.rows()), binary_cross_entropy_backward_kernel<T>,
           ctx.state(), logits.matrix<const T>(), label.matrix<const float>(), weight, d_logits.matrix<T>());
  });
}

}  // namespace hctr::ops
