#include "ops/binary_cross_entropy.h"

#include <array>

#include "ops/binary_cross_entropy_rules.h"
#include "ops/element_loops.h"

namespace hctr::ops {
namespace {

/// What labels, losses and probabilities are made of: f32, also for logits of two bytes.
DType wide(DType logits) { return logits == DType::f64 ? DType::f64 : DType::f32; }

void check_column(Context& ctx, const char* what, const Tensor& t, int64_t batch, DType dtype) {
  expect_on(what, ctx.device(), t);
  expect_shape(what, t, {batch, 1});
  HCTR_EXPECT(t.dtype() == dtype, what, ": ", name_of(t.dtype()), ", expected ", name_of(dtype));
}

}  // namespace

void binary_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability) {
  const int64_t batch = logits.rows();
  check_column(ctx, "binary_cross_entropy logits", logits, batch, logits.dtype());
  check_column(ctx, "binary_cross_entropy label", label, batch, wide(logits.dtype()));
  check_column(ctx, "binary_cross_entropy probability", probability, batch, wide(logits.dtype()));
  expect_shape("binary_cross_entropy loss", loss, {1});
  expect_alike("binary_cross_entropy loss", {loss, probability});
  HCTR_EXPECT(ctx.state(), "binary_cross_entropy without a step's state");
  HCTR_ON_DEVICE(ctx, binary_cross_entropy(ctx, logits, label, loss, probability));
}

void cpu::binary_cross_entropy(Context& ctx, Tensor logits, Tensor label, Tensor loss, Tensor probability) {
  const StepState& state = *ctx.state();
  const int64_t batch = logits.rows(), valid = std::min<int64_t>(state.valid_samples, batch);
  constexpr int64_t kParts = 64;
  const int64_t part = std::max<int64_t>(1, (batch + kParts - 1) / kParts);
  dispatch_real(logits.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const auto z = logits.matrix<const T>();
    const auto y = label.matrix<const A>();
    const auto p = probability.matrix<A>();
    std::array<double, kParts> sums{};
    ctx.threads().parallel_for(batch, part, [&](int64_t begin, int64_t end) {
      double sum = 0;
      for (int64_t b = begin; b < end; ++b) {
        const A logit = static_cast<A>(*z.row(b));
        *p.row(b) = probability_of(logit);
        if (b < valid) sum += static_cast<double>(cross_entropy(logit, *y.row(b)));
      }
      sums[static_cast<size_t>(begin / part)] = sum;
    });
    double sum = 0;
    for (const double of_part : sums) sum += of_part;
    *loss.data<A>() = static_cast<A>(sum * share_of_one<double>(state.global_samples));
  });
}

void binary_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, Tensor d_logits, float weight) {
  const int64_t batch = logits.rows();
  check_column(ctx, "binary_cross_entropy_backward logits", logits, batch, logits.dtype());
  check_column(ctx, "binary_cross_entropy_backward label", label, batch, wide(logits.dtype()));
  check_column(ctx, "binary_cross_entropy_backward d_logits", d_logits, batch, logits.dtype());
  HCTR_EXPECT(ctx.state(), "binary_cross_entropy_backward without a step's state");
  HCTR_ON_DEVICE(ctx, binary_cross_entropy_backward(ctx, logits, label, d_logits, weight));
}

void cpu::binary_cross_entropy_backward(Context& ctx, Tensor logits, Tensor label, Tensor d_logits, float weight) {
  const StepState& state = *ctx.state();
  const int64_t batch = logits.rows(), valid = std::min<int64_t>(state.valid_samples, batch);
  dispatch_real(logits.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const auto z = logits.matrix<const T>();
    const auto y = label.matrix<const A>();
    const auto dz = d_logits.matrix<T>();
    const A factor = static_cast<A>(weight) * static_cast<A>(state.loss_scale) * share_of_one<A>(state.global_samples);
    ctx.threads().parallel_for(batch, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const A gradient = factor * (probability_of(static_cast<A>(*z.row(b))) - *y.row(b));
        *dz.row(b) = static_cast<T>(b < valid ? gradient : A(0));
      }
    });
  });
}

}  // namespace hctr::ops
