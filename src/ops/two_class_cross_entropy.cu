// As ops/binary_cross_entropy.cu, with the difference of two logits for the one.
#include "ops/two_class_cross_entropy.h"

#include "ops/binary_cross_entropy_rules.h"
#include "ops/element_loops.cuh"
#include "ops/reduce.cuh"

namespace hctr::ops {
namespace {

constexpr int kThreads = 1024;

template <class T>
__global__ void two_class_cross_entropy_kernel(const StepState* state, View<const T, 2> logits,
                                               View<const float, 2> label, float* loss, View<float, 2> probability) {
  const int64_t batch = logits.size(0), valid = state->valid_samples;
  double sum = 0;
#pragma unroll 4
  for (int64_t b = threadIdx.x; b < batch; b += kThreads) {
    const float d = static_cast<float>(logits.row(b)[1]) - static_cast<float>(logits.row(b)[0]);
    *probability.row(b) = probability_of(d);
    if (b < valid) sum += static_cast<double>(cross_entropy(d, class_of(*label.row(b))));
  }
  sum = cuda::block_sum<kThreads>(sum);
  if (threadIdx.x == 0) *loss = static_cast<float>(sum * share_of_one<double>(state->global_samples));
}

template <class T>
__global__ void two_class_cross_entropy_backward_kernel(const StepState* state, View<const T, 2> logits,
                                                        View<const float, 2> label, float weight, View<T, 2> d_logits) {
  const int64_t batch = logits.size(0), valid = state->valid_samples;
  const float factor = weight * state->loss_scale * share_of_one<float>(state->global_samples);
  for (int64_t b = cuda::thread_index(); b < batch; b += cuda::thread_count()) {
    const float d = static_cast<float>(logits.row(b)[1]) - static_cast<float>(logits.row(b)[0]);
    const float gradient = b < valid ? factor * (probability_of(d) - class_of(*label.row(b))) : 0.0f;
    d_logits.row(b)[0] = static_cast<T>(-gradient);
    d_logits.row(b)[1] = static_cast<T>(gradient);
  }
}

}  // namespace

void cuda::two_class_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability) {
  dispatch_float(logits.dtype(), [&]<class T>() {
    launch(ctx, "two_class_cross_entropy", Grid{1, kThreads, 0}, two_class_cross_entropy_kernel<T>, ctx.state(),
           logits.matrix<const T>(), label.matrix<const float>(), loss.data<float>(), probability.matrix<float>());
  });
}

void cuda::two_class_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, float weight, Tensor d_logits) {
  dispatch_float(logits.dtype(), [&]<class T>() {
    launch(ctx, "two_class_cross_entropy_backward", grid_for(logits.rows()), two_class_cross_entropy_backward_kernel<T>,
           ctx.state(), logits.matrix<const T>(), label.matrix<const float>(), weight, d_logits.matrix<T>());
  });
}

}  // namespace hctr::ops
