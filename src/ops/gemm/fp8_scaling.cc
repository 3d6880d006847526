#include "ops/gemm/fp8_scaling.h"

namespace hctr::ops {

void finish_fp8_scales(Context& ctx, Tensor amax, Fp8Scale* scales) {
  expect_on("finish_fp8_scales", ctx.device(), amax);
  HCTR_EXPECT(amax.rank() == 1, "finish_fp8_scales: expected a vector, found shape ", to_string(amax.shape()));
  HCTR_ON_DEVICE(ctx, finish_fp8_scales(ctx, amax, scales));
}

void cpu::finish_fp8_scales(Context& ctx, Tensor amax, Fp8Scale* scales) {
  const bool skip = ctx.state() && ctx.state()->skip;
  auto* const most = amax.data<float>();
  for (int64_t i = 0; i < amax.elements(); ++i) {
    if (!skip) scales[i].finish(most[i]);
    most[i] = 0;
  }
}

}  // namespace hctr::ops
