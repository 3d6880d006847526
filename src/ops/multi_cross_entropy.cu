// As ops/binary_cross_entropy.cu. The weights of the labels travel as kernel arguments, so many at a time; more labels
// take more launches, which add to the loss in order.
#include "ops/multi_cross_entropy.h"

#include "ops/binary_cross_entropy_rules.h"
#include "ops/element_loops.cuh"
#include "ops/reduce.cuh"

namespace hctr::ops {
namespace {

constexpr int kThreads = 1024;
constexpr int64_t kMostLabels = 512;

struct TargetWeights {
  float at[kMostLabels];
};

template <class T>
__global__ void multi_cross_entropy_kernel(const StepState* state, View<const T, 2> logits, View<const float, 2> label,
                                           const __grid_constant__ TargetWeights t, double share, bool is_first,
                                           float* loss, View<float, 2> probability) {
  const int64_t labels = logits.size(1), count = logits.size(0) * labels, valid = state->valid_samples;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    const cuda::Stretch s = cuda::stretch(i, logits.size(0), labels, 1);
    const float z = static_cast<float>(logits.row(s.row)[s.column]), y = label.row(s.row)[s.column];
    probability.row(s.row)[s.column] = probability_of(z);
    if (s.row < valid && !is_missing(y)) sum += static_cast<double>(t.at[s.column] * cross_entropy(z, y));
  }
  sum = cuda::block_sum<kThreads>(sum);
  if (threadIdx.x != 0) return;
  const auto part = static_cast<float>(sum * share_of_one<double>(state->global_samples) * share);
  *loss = is_first ? part : *loss + part;
}

template <class T>
__global__ void multi_cross_entropy_backward_kernel(const StepState* state, View<const T, 2> logits,
                                                    View<const float, 2> label, const __grid_constant__ TargetWeights t,
                                                    float weight, View<T, 2> d_logits) {
  const int64_t labels = logits.size(1), count = logits.size(0) * labels, valid = state->valid_samples;
  const float factor = weight * state->loss_scale * share_of_one<float>(state->global_samples);
  for (int64_t i = cuda::thread_index(); i < count; i += cuda::thread_count()) {
    const cuda::Stretch s = cuda::stretch(i, logits.size(0), labels, 1);
    const float y = label.row(s.row)[s.column];
    const float gradient =
        factor * t.at[s.column] * (probability_of(static_cast<float>(logits.row(s.row)[s.column])) - y);
    d_logits.row(s.row)[s.column] = static_cast<T>(s.row < valid && !is_missing(y) ? gradient : 0.0f);
  }
}

/// Calls body(begin, end, weights) for so many labels at a time.
template <class Body>
void for_labels(const std::vector<float>& t, const Body& body) {
  const auto labels = static_cast<int64_t>(t.size());
  for (int64_t begin = 0; begin < labels; begin += kMostLabels) {
    const int64_t end = std::min(begin + kMostLabels, labels);
    TargetWeights weights{};
    std::copy(t.begin() + begin, t.begin() + end, weights.at);
    body(begin, end, weights);
  }
}

}  // namespace

void cuda::multi_cross_entropy(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t, Tensor loss,
                               Tensor probability) {
  const double share = 1 / static_cast<double>(t.size());
  dispatch_float(logits.dtype(), [&]<class T>() {
    for_labels(t, [&](int64_t begin, int64_t end, const TargetWeights& weights) {
      launch(ctx, "multi_cross_entropy", Grid{1, kThreads, 0}, multi_cross_entropy_kernel<T>, ctx.state(),
             logits.columns(begin, end).matrix<const T>(), label.columns(begin, end).matrix<const float>(), weights,
             share, begin == 0, loss.data<float>(), probability.columns(begin, end).matrix<float>());
    });
  });
}

void cuda::multi_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t,
                                        float weight, Tensor d_logits) {
  const float share = weight / static_cast<float>(t.size());
  dispatch_float(logits.dtype(), [&]<class T>() {
    for_labels(t, [&](int64_t begin, int64_t end, const TargetWeights& weights) {
      launch(ctx, "multi_cross_entropy_backward", grid_for(logits.rows() * (end - begin)),
             multi_cross_entropy_backward_kernel<T>, ctx.state(), logits.columns(begin, end).matrix<const T>(),
             label.columns(begin, end).matrix<const float>(), weights, share, d_logits.columns(begin, end).matrix<T>());
    });
  });
}

}  // namespace hctr::ops
