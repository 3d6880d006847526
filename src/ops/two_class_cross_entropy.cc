#include "ops/two_class_cross_entropy.h"

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

}  // namespace

void two_class_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability) {
  const int64_t batch = logits.rows();
  check(ctx, "two_class_cross_entropy logits", logits, {batch, 2}, logits.dtype());
  check(ctx, "two_class_cross_entropy label", label, {batch, 1}, wide(logits.dtype()));
  check(ctx, "two_class_cross_entropy loss", loss, {1}, wide(logits.dtype()));
  check(ctx, "two_class_cross_entropy probability", probability, {batch, 1}, wide(logits.dtype()));
  HCTR_EXPECT(ctx.state(), "two_class_cross_entropy without a step's state");
  HCTR_ON_DEVICE(ctx, two_class_cross_entropy(ctx, logits, label, loss, probability));
}

void cpu::two_class_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability) {
  const StepState& state = *ctx.state();
  dispatch_real(logits.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const auto z = logits.matrix<const T>();
    const auto y = label.matrix<const A>();
    const auto p = probability.matrix<A>();
    const double sum = sum_loss(ctx, logits.rows(), [&](int64_t b) {
      const A d = static_cast<A>(z.row(b)[1]) - static_cast<A>(z.row(b)[0]);
      *p.row(b) = probability_of(d);
      return b < state.valid_samples ? static_cast<double>(cross_entropy(d, class_of(*y.row(b)))) : 0.0;
    });
    *loss.data<A>() = static_cast<A>(sum * share_of_one<double>(state.global_samples));
  });
}

void two_class_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, float weight, Tensor d_logits) {
  const int64_t batch = logits.rows();
  check(ctx, "two_class_cross_entropy_backward logits", logits, {batch, 2}, logits.dtype());
  check(ctx, "two_class_cross_entropy_backward label", label, {batch, 1}, wide(logits.dtype()));
  check(ctx, "two_class_cross_entropy_backward d_logits", d_logits, {batch, 2}, logits.dtype());
  HCTR_EXPECT(ctx.state(), "two_class_cross_entropy_backward without a step's state");
  HCTR_ON_DEVICE(ctx, two_class_cross_entropy_backward(ctx, logits, label, weight, d_logits));
}

void cpu::two_class_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, float weight, Tensor d_logits) {
  const StepState& state = *ctx.state();
  dispatch_real(logits.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const auto z = logits.matrix<const T>();
    const auto y = label.matrix<const A>();
    const auto dz = d_logits.matrix<T>();
    const A factor = static_cast<A>(weight) * static_cast<A>(state.loss_scale) * share_of_one<A>(state.global_samples);
    ctx.threads().parallel_for(logits.rows(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const A d = static_cast<A>(z.row(b)[1]) - static_cast<A>(z.row(b)[0]);
        const A gradient = b < state.valid_samples ? factor * (probability_of(d) - class_of(*y.row(b))) : A(0);
        dz.row(b)[0] = static_cast<T>(-gradient);
        dz.row(b)[1] = static_cast<T>(gradient);
      }
    });
  });
}

}  // namespace hctr::ops
