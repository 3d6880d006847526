#include "ops/multi_cross_entropy.h"

#include "ops/binary_cross_entropy_rules.h"
#include "ops/loss_sum.h"

namespace hctr::ops {
namespace {

/// What labels, losses and probabilities are made of: f32, also for logits of two bytes.
DType wide(DType logits) { return logits == DType::f64 ? DType::f64 : DType::f32; }

void check(Context& ctx, const char* what, const Tensor& t, Shape shape, DType dtype) {
  expect_on(what, ctx.device(), t);
  expect_shape(what, t, shape);
  HCTR_EXPECT(t.dtype() == dtype, what, ": ", name_of(t.dtype()), ", expected ", name_of(dtype));
}

void check_inputs(Context& ctx, const char* what, const Tensor& logits, const Tensor& label,
                  const std::vector<float>& t) {
  expect_on(what, ctx.device(), logits);
  HCTR_EXPECT(logits.rank() == 2, what, " of logits of shape ", to_string(logits.shape()));
  check(ctx, what, label, logits.shape(), wide(logits.dtype()));
  HCTR_EXPECT(static_cast<int64_t>(t.size()) == logits.dim(1), what, ": ", t.size(), " weights for ", logits.dim(1),
              " labels");
  HCTR_EXPECT(ctx.state(), what, " without a step's state");
}

}  // namespace

void multi_cross_entropy(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t, Tensor loss,
                         Tensor probability) {
  check_inputs(ctx, "multi_cross_entropy", logits, label, t);
  check(ctx, "multi_cross_entropy loss", loss, {1}, wide(logits.dtype()));
  check(ctx, "multi_cross_entropy probability", probability, logits.shape(), wide(logits.dtype()));
  HCTR_ON_DEVICE(ctx, multi_cross_entropy(ctx, logits, label, t, loss, probability));
}

void cpu::multi_cross_entropy(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t, Tensor loss,
                              Tensor probability) {
  const StepState& state = *ctx.state();
  const int64_t labels = logits.dim(1);
  dispatch_real(logits.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const auto z = logits.matrix<const T>();
    const auto y = label.matrix<const A>();
    const auto p = probability.matrix<A>();
    const double sum = sum_loss(ctx, logits.rows(), [&](int64_t b) {
      double of_row = 0;
      for (int64_t j = 0; j < labels; ++j) {
        const A logit = static_cast<A>(z.row(b)[j]), target = y.row(b)[j];
        p.row(b)[j] = probability_of(logit);
        if (!is_missing(target))
          of_row += static_cast<double>(static_cast<A>(t[static_cast<size_t>(j)]) * cross_entropy(logit, target));
      }
      return b < state.valid_samples ? of_row : 0.0;
    });
    *loss.data<A>() = static_cast<A>(sum * share_of_one<double>(state.global_samples) / static_cast<double>(labels));
  });
}

void multi_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t, float weight,
                                  Tensor d_logits) {
  check_inputs(ctx, "multi_cross_entropy_backward", logits, label, t);
  check(ctx, "multi_cross_entropy_backward d_logits", d_logits, logits.shape(), logits.dtype());
  HCTR_ON_DEVICE(ctx, multi_cross_entropy_backward(ctx, logits, label, t, weight, d_logits));
}

void cpu::multi_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, const std::vector<float>& t,
                                       float weight, Tensor d_logits) {
  const StepState& state = *ctx.state();
  const int64_t labels = logits.dim(1);
  dispatch_real(logits.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const auto z = logits.matrix<const T>();
    const auto y = label.matrix<const A>();
    const auto dz = d_logits.matrix<T>();
    const A factor = static_cast<A>(weight) * static_cast<A>(state.loss_scale) * share_of_one<A>(state.global_samples) /
                     static_cast<A>(labels);
    ctx.threads().parallel_for(logits.rows(), 1024, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        for (int64_t j = 0; j < labels; ++j) {
          const A target = y.row(b)[j];
          const bool counts = b < state.valid_samples && !is_missing(target);
          const A gradient = factor * static_cast<A>(t[static_cast<size_t>(j)]) *
                             (probability_of(static_cast<A>(z.row(b)[j])) - target);
          dz.row(b)[j] = static_cast<T>(counts ? gradient : A(0));
        }
    });
  });
}

}  // namespace hctr::ops
