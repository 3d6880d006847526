// Cross entropy kernels. For a small batch, one block sums in double: each thread sums its terms, and a tree sums the
// threads. For a large batch, many blocks write partial sums to the GEMM workspace, and one block adds them. The order
// depends on the shape only. The weights of labels are kernel arguments. If there are more than kMostLabels labels,
// there are several launches, which add to the loss in order.
#include "ops/loss/cross_entropy.h"

#include "core/device/cuda_libraries.cuh"
#include "core/device/scoring_scope.h"
#include "ops/common/element_loops.cuh"
#include "ops/common/reduce.cuh"
#include "ops/loss/cross_entropy_rules.h"

namespace hctr::ops {
namespace {

constexpr int kLossThreads = 1024;
constexpr int64_t kMostLabels = 512;

struct LabelWeights {
  float at[kMostLabels];
  __device__ float operator[](int64_t j) const { return at[j]; }
};

/// The output of the logits' gradients.
template <class T>
struct LogitGradients {
  View<T, 2> d_logits;
  float weight;
  __device__ float factor(const StepState* state) const {
    return weight * state->loss_scale * inverse_count<float>(state->global_samples);
  }
};
struct NoGradients {};

/// Returns the sum of the terms with index first, first + step, ... below `end`. Also writes the probabilities of these
/// terms, and the gradients unless `gradients` is NoGradients.
template <class Terms, class Gradients>
__device__ inline double sum_terms(const StepState* state, const Terms& terms, int64_t first, int64_t end, int64_t step,
                                   View<float, 2>& probability, const Gradients& gradients) {
  constexpr bool kGradients = !std::is_same_v<Gradients, NoGradients>;
  float factor = 0;
  if constexpr (kGradients) factor = gradients.factor(state);
  const int64_t rows = probability.size(0), per_row = terms.per_row(), valid = state->valid_samples;
  const float log_negative_share = state->log_negative_share;
  double sum = 0;
#pragma unroll 4
  for (int64_t i = first; i < end; i += step) {
    const cuda::Chunk at = cuda::chunk_at(i, rows, per_row, 1);
    const CrossEntropyTerm<float> term = terms(at.row, at.column);
    probability.row(at.row)[at.column] = term.probability();
    const bool counts = at.row < valid && term.has_label;
    if (counts) sum += static_cast<double>(term.sampled(log_negative_share).loss());
    if constexpr (kGradients)
      terms.write_gradient(gradients.d_logits.row(at.row), at.column,
                           counts ? term.sampled(log_negative_share).gradient(factor) : 0.0f);
  }
  return sum;
}

/// Writes the loss. `factor`: 1 / the number of labels. `adds`: adds to the loss of earlier launches.
__device__ inline void write_loss(const StepState* state, double sum, double factor, bool adds, float* loss) {
  const auto part = static_cast<float>(sum * inverse_count<double>(state->global_samples) * factor);
  *loss = adds ? *loss + part : part;
}

template <class Terms, class Gradients>
__global__ void cross_entropy_kernel(const StepState* state, const __grid_constant__ Terms terms, double factor,
                                     bool adds, float* loss, View<float, 2> probability, Gradients gradients) {
  cuda::start_early();
  const double sum = cuda::block_sum<kLossThreads>(sum_terms(
      state, terms, threadIdx.x, probability.size(0) * terms.per_row(), kLossThreads, probability, gradients));
  if (threadIdx.x == 0) write_loss(state, sum, factor, adds, loss);
}

/// Threads and terms of a block, if several blocks compute the loss.
constexpr int kPartThreads = 256;
constexpr int64_t kPartTerms = 1024;

template <class Terms, class Gradients>
__global__ void __launch_bounds__(kPartThreads)
    cross_entropy_parts_kernel(const StepState* state, const __grid_constant__ Terms terms, double* parts,
                               View<float, 2> probability, Gradients gradients) {
  const int64_t begin = blockIdx.x * kPartTerms, end = min(begin + kPartTerms, probability.size(0) * terms.per_row());
  const double sum = cuda::block_sum<kPartThreads>(
      sum_terms(state, terms, begin + threadIdx.x, end, kPartThreads, probability, gradients));
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kLossThreads)
    cross_entropy_total_kernel(const StepState* state, const double* parts, int64_t count, double factor, bool adds,
                               float* loss) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kLossThreads) sum += parts[i];
  sum = cuda::block_sum<kLossThreads>(sum);
  if (threadIdx.x == 0) write_loss(state, sum, factor, adds, loss);
}

template <class T, class Terms>
__global__ void cross_entropy_backward_kernel(const StepState* state, const __grid_constant__ Terms terms, float weight,
                                              View<T, 2> d_logits) {
  const int64_t rows = d_logits.size(0), per_row = terms.per_row(), valid = state->valid_samples;
  const float factor = LogitGradients<T>{d_logits, weight}.factor(state);
  const float log_negative_share = state->log_negative_share;
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk at = cuda::chunk_at(i, rows, per_row, 1);
    const CrossEntropyTerm<float> term = terms(at.row, at.column);
    terms.write_gradient(d_logits.row(at.row), at.column,
                         at.row < valid && term.has_label ? term.sampled(log_negative_share).gradient(factor) : 0.0f);
  }
}

/// Writes only the probabilities.
template <class Terms>
__global__ void probabilities_kernel(const __grid_constant__ Terms terms, View<float, 2> probability) {
  cuda::start_early();
  const int64_t rows = probability.size(0), per_row = terms.per_row();
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk at = cuda::chunk_at(i, rows, per_row, 1);
    probability.row(at.row)[at.column] = terms(at.row, at.column).probability();
  }
}

template <class Terms, class Gradients = NoGradients>
void launch_forward(Context& ctx, const char* name, const Terms& terms, double factor, bool adds, const Tensor& loss,
                    const Tensor& probability, const Gradients& gradients = {}) {
  const View<float, 2> of_rows = probability.matrix<float>();
  if (const ScoringRules* const rules = ScoringScope::rules(); rules && !rules->losses)
    return cuda::launch(ctx, name, cuda::early(cuda::grid_for(probability.rows() * terms.per_row())),
                        probabilities_kernel<Terms>, terms, of_rows);
  const int64_t count = (probability.rows() * terms.per_row() + kPartTerms - 1) / kPartTerms;
  const Buffer& memory = ctx.runtime().cuda_libraries()->blas_workspace;  // used only by kernels on the compute stream
  const bool is_free = ctx.stream().handle == ctx.runtime().compute_stream().handle;
  if (count <= 4 || !is_free || static_cast<size_t>(count) * sizeof(double) > memory.bytes())
    return cuda::launch(ctx, name, cuda::early({1, kLossThreads, 0}), cross_entropy_kernel<Terms, Gradients>,
                        ctx.state(), terms, factor, adds, loss.data<float>(), of_rows, gradients);
  auto* parts = reinterpret_cast<double*>(memory.data());
  cuda::launch(ctx, name, cuda::Grid{count, kPartThreads, 0}, cross_entropy_parts_kernel<Terms, Gradients>, ctx.state(),
               terms, parts, of_rows, gradients);
  cuda::launch(ctx, name, cuda::Grid{1, kLossThreads, 0}, cross_entropy_total_kernel, ctx.state(), parts, count, factor,
               adds, loss.data<float>());
}

template <class T, class Terms>
void launch_backward(Context& ctx, const char* name, const Terms& terms, float weight, const Tensor& d_logits) {
  cuda::launch(ctx, name, cuda::grid_for(d_logits.rows() * terms.per_row()), cross_entropy_backward_kernel<T, Terms>,
               ctx.state(), terms, weight, d_logits.matrix<T>());
}

template <class T>
BinaryTerms<T> binary_terms(const Tensor& logits, const Tensor& label, const TermWeights& weights) {
  return {logits.matrix<const T>(), label.matrix<const float>(), factor_of<float>(weights)};
}
template <class T>
TwoClassTerms<T> two_class_terms(const Tensor& logits, const Tensor& label, const TermWeights& weights) {
  return {logits.matrix<const T>(), label.matrix<const float>(), factor_of<float>(weights)};
}

/// Calls body(begin, end, terms) for the columns [begin, end) of each launch.
template <class T, class Body>
void for_labels(const Tensor& logits, const Tensor& label, const std::vector<float>& t, const TermWeights& weights,
                const Body& body) {
  const auto labels = static_cast<int64_t>(t.size());
  for (int64_t begin = 0; begin < labels; begin += kMostLabels) {
    const int64_t end = std::min(begin + kMostLabels, labels);
    MultiTerms<T, LabelWeights> terms{logits.columns(begin, end).matrix<const T>(),
                                      label.columns(begin, end).matrix<const float>(),
                                      {},
                                      factor_of<float>(weights)};
    std::copy(t.begin() + begin, t.begin() + end, terms.weights.at);
    body(begin, end, terms);
  }
}

}  // namespace

void cuda::binary_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability,
                                const TermWeights& weights, const std::optional<LogitGradient>& gradient) {
  dispatch_float(logits.dtype(), [&]<class T>() {
    const BinaryTerms<T> terms = binary_terms<T>(logits, label, weights);
    if (gradient)
      launch_forward(ctx, "binary_cross_entropy", terms, 1, false, loss, probability,
                     LogitGradients<T>{gradient->d_logits.matrix<T>(), gradient->weight});
    else
      launch_forward(ctx, "binary_cross_entropy", terms, 1, false, loss, probability);
  });
}

void cuda::binary_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, float weight, Tensor d_logits,
                                         const TermWeights& weights) {
  dispatch_float(logits.dtype(), [&]<class T>() {
    launch_backward<T>(ctx, "binary_cross_entropy_backward", binary_terms<T>(logits, label, weights), weight, d_logits);
  });
}

void cuda::two_class_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability,
                                   const TermWeights& weights) {
  dispatch_float(logits.dtype(), [&]<class T>() {
    launch_forward(ctx, "two_class_cross_entropy", two_class_terms<T>(logits, label, weights), 1, false, loss,
                   probability);
  });
}

void cuda::two_class_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, float weight, Tensor d_logits,
                                            const TermWeights& weights) {
  dispatch_float(logits.dtype(), [&]<class T>() {
    launch_backward<T>(ctx, "two_class_cross_entropy_backward", two_class_terms<T>(logits, label, weights), weight,
                       d_logits);
  });
}

void cuda::multi_cross_entropy(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t, Tensor loss,
                               Tensor probability, const TermWeights& weights) {
  const double factor = 1 / static_cast<double>(t.size());
  dispatch_float(logits.dtype(), [&]<class T>() {
    for_labels<T>(logits, label, t, weights, [&](int64_t begin, int64_t end, const auto& terms) {
      launch_forward(ctx, "multi_cross_entropy", terms, factor, begin > 0, loss, probability.columns(begin, end));
    });
  });
}

void cuda::multi_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t,
                                        float weight, Tensor d_logits, const TermWeights& weights) {
  const float of_label = weight / static_cast<float>(t.size());
  dispatch_float(logits.dtype(), [&]<class T>() {
    for_labels<T>(logits, label, t, weights, [&](int64_t begin, int64_t end, const auto& terms) {
      launch_backward<T>(ctx, "multi_cross_entropy_backward", terms, of_label, d_logits.columns(begin, end));
    });
  });
}

}  // namespace hctr::ops
