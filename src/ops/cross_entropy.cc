#include "ops/cross_entropy.h"

#include <algorithm>
#include <array>

#include "ops/checks.h"
#include "ops/cross_entropy_rules.h"

namespace hctr::ops {
namespace {

void expect_logits(const char* what, Context& ctx, const Tensor& logits, int64_t columns) {
  expect_tensor(what, ctx.device(), logits, {logits.rows(), columns}, logits.dtype());
  HCTR_EXPECT(ctx.state(), what, " without a step's state");
}

void expect_labels(const char* what, Context& ctx, const Tensor& logits, const Tensor& label, int64_t columns) {
  expect_tensor(what, ctx.device(), label, {logits.rows(), columns}, sum_dtype(logits.dtype()));
}

void expect_loss(const char* what, Context& ctx, const Tensor& logits, const Tensor& loss) {
  expect_tensor(what, ctx.device(), loss, {1}, sum_dtype(logits.dtype()));
}

void expect_weights(const char* what, const Tensor& logits, const std::vector<float>& t) {
  HCTR_EXPECT(logits.rank() == 2, what, " of logits of shape ", to_string(logits.shape()));
  HCTR_EXPECT(static_cast<int64_t>(t.size()) == logits.dim(1), what, ": ", t.size(), " weights for ", logits.dim(1),
              " labels");
}

}  // namespace

void binary_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability) {
  expect_logits("binary_cross_entropy logits", ctx, logits, 1);
  expect_labels("binary_cross_entropy label", ctx, logits, label, 1);
  expect_loss("binary_cross_entropy loss", ctx, logits, loss);
  expect_labels("binary_cross_entropy probability", ctx, logits, probability, 1);
  HCTR_ON_DEVICE(ctx, binary_cross_entropy(ctx, logits, label, loss, probability));
}

void binary_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, float weight, Tensor d_logits) {
  expect_logits("binary_cross_entropy_backward logits", ctx, logits, 1);
  expect_labels("binary_cross_entropy_backward label", ctx, logits, label, 1);
  expect_tensor("binary_cross_entropy_backward d_logits", ctx.device(), d_logits, logits.shape(), logits.dtype());
  HCTR_ON_DEVICE(ctx, binary_cross_entropy_backward(ctx, logits, label, weight, d_logits));
}

void two_class_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability) {
  expect_logits("two_class_cross_entropy logits", ctx, logits, 2);
  expect_labels("two_class_cross_entropy label", ctx, logits, label, 1);
  expect_loss("two_class_cross_entropy loss", ctx, logits, loss);
  expect_labels("two_class_cross_entropy probability", ctx, logits, probability, 1);
  HCTR_ON_DEVICE(ctx, two_class_cross_entropy(ctx, logits, label, loss, probability));
}

void two_class_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, float weight, Tensor d_logits) {
  expect_logits("two_class_cross_entropy_backward logits", ctx, logits, 2);
  expect_labels("two_class_cross_entropy_backward label", ctx, logits, label, 1);
  expect_tensor("two_class_cross_entropy_backward d_logits", ctx.device(), d_logits, logits.shape(), logits.dtype());
  HCTR_ON_DEVICE(ctx, two_class_cross_entropy_backward(ctx, logits, label, weight, d_logits));
}

void multi_cross_entropy(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t, Tensor loss,
                         Tensor probability) {
  expect_weights("multi_cross_entropy", logits, t);
  expect_logits("multi_cross_entropy logits", ctx, logits, logits.dim(1));
  expect_labels("multi_cross_entropy label", ctx, logits, label, logits.dim(1));
  expect_loss("multi_cross_entropy loss", ctx, logits, loss);
  expect_labels("multi_cross_entropy probability", ctx, logits, probability, logits.dim(1));
  HCTR_ON_DEVICE(ctx, multi_cross_entropy(ctx, logits, label, t, loss, probability));
}

void multi_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t, float weight,
                                  Tensor d_logits) {
  expect_weights("multi_cross_entropy_backward", logits, t);
  expect_logits("multi_cross_entropy_backward logits", ctx, logits, logits.dim(1));
  expect_labels("multi_cross_entropy_backward label", ctx, logits, label, logits.dim(1));
  expect_tensor("multi_cross_entropy_backward d_logits", ctx.device(), d_logits, logits.shape(), logits.dtype());
  HCTR_ON_DEVICE(ctx, multi_cross_entropy_backward(ctx, logits, label, t, weight, d_logits));
}

namespace cpu {
namespace {

/// loss[0] = the mean over the global batch of the sums of terms in a row, divided by per_row(). Rows are summed in
/// double, in chunks that depend on their number alone, then the chunks in order.
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
        if (term.has_label) of_row += static_cast<double>(term.loss());
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
        terms.write_gradient(dz.row(b), j, counts ? term.gradient(factor) : A(0));
      }
  });
}

template <class T>
BinaryTerms<T> binary_terms(const Tensor& logits, const Tensor& label) {
  return {logits.matrix<const T>(), label.matrix<const Acc<T>>()};
}
template <class T>
TwoClassTerms<T> two_class_terms(const Tensor& logits, const Tensor& label) {
  return {logits.matrix<const T>(), label.matrix<const Acc<T>>()};
}
template <class T>
MultiTerms<T, const float*> multi_terms(const Tensor& logits, const Tensor& label, const std::vector<float>& t) {
  return {logits.matrix<const T>(), label.matrix<const Acc<T>>(), t.data()};
}

}  // namespace

void binary_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability) {
  dispatch_real(logits.dtype(),
                [&]<class T>() { sum_terms<Acc<T>>(ctx, binary_terms<T>(logits, label), loss, probability); });
}
void binary_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, float weight, Tensor d_logits) {
  dispatch_real(logits.dtype(),
                [&]<class T>() { write_gradients<T>(ctx, binary_terms<T>(logits, label), weight, d_logits); });
}

void two_class_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability) {
  dispatch_real(logits.dtype(),
                [&]<class T>() { sum_terms<Acc<T>>(ctx, two_class_terms<T>(logits, label), loss, probability); });
}
void two_class_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, float weight, Tensor d_logits) {
  dispatch_real(logits.dtype(),
                [&]<class T>() { write_gradients<T>(ctx, two_class_terms<T>(logits, label), weight, d_logits); });
}

void multi_cross_entropy(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t, Tensor loss,
                         Tensor probability) {
  dispatch_real(logits.dtype(),
                [&]<class T>() { sum_terms<Acc<T>>(ctx, multi_terms<T>(logits, label, t), loss, probability); });
}
void multi_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t, float weight,
                                  Tensor d_logits) {
  dispatch_real(logits.dtype(),
                [&]<class T>() { write_gradients<T>(ctx, multi_terms<T>(logits, label, t), weight, d_logits); });
}

}  // namespace cpu
}  // namespace hctr::ops
