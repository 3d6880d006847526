#include "ops/common/fill.h"

#include "ops/common/element_loops.h"

namespace hctr::ops {

void fill(Context& ctx, float value, Tensor y) {
  expect_on("fill y", ctx.device(), y);
  HCTR_ON_DEVICE(ctx, fill(ctx, value, y));
}

void cpu::fill(Context& ctx, float value, Tensor y) {
  const Extent extent = extent_of({y});
  dispatch_real(y.dtype(), [&]<class T>() { map(ctx, [value] { return Acc<T>(value); }, rows_of<T>(y, extent)); });
}

}  // namespace hctr::ops
