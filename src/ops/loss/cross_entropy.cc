#include "ops/loss/cross_entropy.h"

#include <algorithm>
#include <array>
#include <string>

#include "ops/common/checks.h"
#include "ops/loss/cross_entropy_rules.h"

namespace hctr::ops {
namespace {

/// The inputs of a loss, and the required numbers of columns. Labels have the accumulator dtype of the logits.
struct LossInputs {
  const Tensor &logits, &label;
  const TermWeights& weights;
  int64_t logit_columns = 1, label_columns = 1;

  void expect(const std::string& what, Context& ctx) const {
    HCTR_EXPECT(ctx.state(), what, " needs a step state");
    expect_tensor((what + " logits").c_str(), ctx.device(), logits, {logits.rows(), logit_columns}, logits.dtype());
    expect_label_shape(what + " label", ctx, label);
    if (weights.samples)
      expect_tensor((what + " weights").c_str(), ctx.device(), *weights.samples, {logits.rows(), 1},
                    sum_dtype(logits.dtype()));
  }
  void expect_label_shape(const std::string& what, Context& ctx, const Tensor& t) const {
    expect_tensor(what.c_str(), ctx.device(), t, {logits.rows(), label_columns}, sum_dtype(logits.dtype()));
  }
};

void expect_forward(const std::string& what, Context& ctx, const LossInputs& inputs, const Tensor& loss,
                    const Tensor& probability) {
  inputs.expect(what, ctx);
  expect_tensor((what + " loss").c_str(), ctx.device(), loss, {1}, sum_dtype(inputs.logits.dtype()));
  inputs.expect_label_shape(what + " probability", ctx, probability);
}

void expect_backward(const std::string& what, Context& ctx, const LossInputs& inputs, const Tensor& d_logits) {
  inputs.expect(what, ctx);
  const Tensor& logits = inputs.logits;
  expect_tensor((what + " d_logits").c_str(), ctx.device(), d_logits, logits.shape(), logits.dtype());
}

void expect_weights(const char* what, const Tensor& logits, const std::vector<float>& t) {
  HCTR_EXPECT(logits.rank() == 2, what, ": expected a matrix of logits, found shape ", to_string(logits.shape()));
  HCTR_EXPECT(static_cast<int64_t>(t.size()) == logits.dim(1), what, ": ", t.size(), " weights for ", logits.dim(1),
              " labels");
}

}  // namespace

void binary_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability,
                          const TermWeights& weights, const std::optional<LogitGradient>& gradient) {
  expect_forward("binary_cross_entropy", ctx, {logits, label, weights}, loss, probability);
  if (gradient) expect_backward("binary_cross_entropy", ctx, {logits, label, weights}, gradient->d_logits);
  HCTR_ON_DEVICE(ctx, binary_cross_entropy(ctx, logits, label, loss, probability, weights, gradient));
}

void binary_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, float weight, Tensor d_logits,
                                   const TermWeights& weights) {
  expect_backward("binary_cross_entropy_backward", ctx, {logits, label, weights}, d_logits);
  HCTR_ON_DEVICE(ctx, binary_cross_entropy_backward(ctx, logits, label, weight, d_logits, weights));
}

void two_class_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability,
                             const TermWeights& weights) {
  expect_forward("two_class_cross_entropy", ctx, {logits, label, weights, 2}, loss, probability);
  HCTR_ON_DEVICE(ctx, two_class_cross_entropy(ctx, logits, label, loss, probability, weights));
}

void two_class_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, float weight, Tensor d_logits,
                                      const TermWeights& weights) {
  expect_backward("two_class_cross_entropy_backward", ctx, {logits, label, weights, 2}, d_logits);
  HCTR_ON_DEVICE(ctx, two_class_cross_entropy_backward(ctx, logits, label, weight, d_logits, weights));
}

void multi_cross_entropy(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t, Tensor loss,
                         Tensor probability, const TermWeights& weights) {
  expect_weights("multi_cross_entropy", logits, t);
  expect_forward("multi_cross_entropy", ctx, {logits, label, weights, logits.dim(1), logits.dim(1)}, loss, probability);
  HCTR_ON_DEVICE(ctx, multi_cross_entropy(ctx, logits, label, t, loss, probability, weights));
}

void multi_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t, float weight,
                                  Tensor d_logits, const TermWeights& weights) {
  expect_weights("multi_cross_entropy_backward", logits, t);
  expect_backward("multi_cross_entropy_backward", ctx, {logits, label, weights, logits.dim(1), logits.dim(1)},
                  d_logits);
  HCTR_ON_DEVICE(ctx, multi_cross_entropy_backward(ctx, logits, label, t, weight, d_logits, weights));
}

namespace cpu {
namespace {

/// Writes the loss: the mean over the global batch, to which each row contributes the sum of its terms, divided by
/// per_row(). The code sums rows in double, in chunks whose size depends on the number of rows only, and then adds the
/// chunks in order.
template <class A, class Terms>
void sum_terms(Context& ctx, const Terms& terms, Tensor loss, Tensor probability) {
  constexpr int64_t kChunks = 64;
  const StepState& state = *ctx.state();
  const int64_t rows = probability.rows(), chunk = std::max<int64_t>(1, (rows + kChunks - 1) / kChunks);
  const auto p = probability.matrix<A>();
  std::array<double, kChunks> sums{};
  ctx.threads().parallel_for(rows, chunk, [&](int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t b = begin; b < end; ++b) {
      double of_row = 0;
      for (int64_t j = 0; j < terms.per_row(); ++j) {
        const CrossEntropyTerm<A> term = terms(b, j);
        p.row(b)[j] = term.probability();
        if (term.has_label) of_row += static_cast<double>(term.sampled(state.log_negative_share).loss());
      }
      if (b < state.valid_samples) sum += of_row;
    }
    sums[static_cast<size_t>(begin / chunk)] = sum;
  });
  double sum = 0;
  for (const double of_chunk : sums) sum += of_chunk;
  *loss.data<A>() =
      static_cast<A>(sum * inverse_count<double>(state.global_samples) / static_cast<double>(terms.per_row()));
}

template <class T, class Terms>
void write_gradients(Context& ctx, const Terms& terms, float weight, Tensor d_logits) {
  using A = Acc<T>;
  const StepState& state = *ctx.state();
  const auto dz = d_logits.matrix<T>();
  const A factor = static_cast<A>(weight) * static_cast<A>(state.loss_scale) * inverse_count<A>(state.global_samples) /
                   static_cast<A>(terms.per_row());
  ctx.threads().parallel_for(d_logits.rows(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      for (int64_t j = 0; j < terms.per_row(); ++j) {
        const CrossEntropyTerm<A> term = terms(b, j);
        const bool counts = b < state.valid_samples && term.has_label;
        terms.write_gradient(dz.row(b), j, counts ? term.sampled(state.log_negative_share).gradient(factor) : A(0));
      }
  });
}

template <class T>
BinaryTerms<T> binary_terms(const Tensor& logits, const Tensor& label, const TermWeights& weights) {
  return {logits.matrix<const T>(), label.matrix<const Acc<T>>(), factor_of<Acc<T>>(weights)};
}
template <class T>
TwoClassTerms<T> two_class_terms(const Tensor& logits, const Tensor& label, const TermWeights& weights) {
  return {logits.matrix<const T>(), label.matrix<const Acc<T>>(), factor_of<Acc<T>>(weights)};
}
template <class T>
MultiTerms<T, const float*> multi_terms(const Tensor& logits, const Tensor& label, const std::vector<float>& t,
                                        const TermWeights& weights) {
  return {logits.matrix<const T>(), label.matrix<const Acc<T>>(), t.data(), factor_of<Acc<T>>(weights)};
}

}  // namespace

void binary_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability,
                          const TermWeights& weights, const std::optional<LogitGradient>& gradient) {
  dispatch_real(logits.dtype(),
                [&]<class T>() { sum_terms<Acc<T>>(ctx, binary_terms<T>(logits, label, weights), loss, probability); });
  if (gradient) cpu::binary_cross_entropy_backward(ctx, logits, label, gradient->weight, gradient->d_logits, weights);
}
void binary_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, float weight, Tensor d_logits,
                                   const TermWeights& weights) {
  dispatch_real(logits.dtype(),
                [&]<class T>() { write_gradients<T>(ctx, binary_terms<T>(logits, label, weights), weight, d_logits); });
}

void two_class_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability,
                             const TermWeights& weights) {
  dispatch_real(logits.dtype(), [&]<class T>() {
    sum_terms<Acc<T>>(ctx, two_class_terms<T>(logits, label, weights), loss, probability);
  });
}
void two_class_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, float weight, Tensor d_logits,
                                      const TermWeights& weights) {
  dispatch_real(logits.dtype(), [&]<class T>() {
    write_gradients<T>(ctx, two_class_terms<T>(logits, label, weights), weight, d_logits);
  });
}

void multi_cross_entropy(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t, Tensor loss,
                         Tensor probability, const TermWeights& weights) {
  dispatch_real(logits.dtype(), [&]<class T>() {
    sum_terms<Acc<T>>(ctx, multi_terms<T>(logits, label, t, weights), loss, probability);
  });
}
void multi_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t, float weight,
                                  Tensor d_logits, const TermWeights& weights) {
  dispatch_real(logits.dtype(), [&]<class T>() {
    write_gradients<T>(ctx, multi_terms<T>(logits, label, t, weights), weight, d_logits);
  });
}

}  // namespace cpu
}  // namespace hctr::ops
