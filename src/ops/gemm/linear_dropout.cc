#include "ops/gemm/linear_dropout.h"

#include "ops/common/dropout.h"
#include "ops/gemm/linear.h"
#include "ops/gemm/transposed_weights.h"

namespace hctr::ops {

void linear_relu_dropout(Context& ctx, Tensor x, Tensor w, Tensor bias, float rate, uint64_t stream, Tensor y,
                         std::optional<Tensor> transposed) {
  expect_on("linear_relu_dropout", ctx.device(), y);
  expect_shape("linear_relu_dropout w", w, {x.dim(1), y.dim(1)});
  expect_shape("linear_relu_dropout y", y, {x.dim(0), w.dim(1)});
  expect_shape("linear_relu_dropout bias", bias, {w.dim(1)});
  expect_alike("linear_relu_dropout", {x, w, bias, y});
  HCTR_EXPECT(bias.dense(), "linear_relu_dropout() needs a dense bias, found a strided one");
  if (transposed) expect_transposed_weights("linear_relu_dropout", w, *transposed);
  HCTR_EXPECT(rate > 0 && rate < 1, "linear_relu_dropout(): expected a rate between 0 and 1, found ", rate);
  HCTR_EXPECT(ctx.state(), "linear_relu_dropout() needs a step state");
  HCTR_ON_DEVICE(ctx, linear_relu_dropout(ctx, x, w, bias, rate, stream, y, transposed));
}

void cpu::linear_relu_dropout(Context& ctx, Tensor x, Tensor w, Tensor bias, float rate, uint64_t stream, Tensor y,
                              std::optional<Tensor>) {
  ops::linear(ctx, x, w, bias, y, true);
  ops::dropout(ctx, rate, stream, y, y);
}

}  // namespace hctr::ops
