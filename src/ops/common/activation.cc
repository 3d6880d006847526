#include "ops/common/activation.h"

#include "ops/common/activation_rules.h"
#include "ops/common/element_loops.h"

namespace hctr::ops {

void activate(Context& ctx, Activation f, Tensor x, Tensor y) {
  expect_on("activate", ctx.device(), y);
  expect_shape("activate y", y, x.shape());
  expect_alike("activate", {x, y});
  HCTR_ON_DEVICE(ctx, activate(ctx, f, x, y));
}

void cpu::activate(Context& ctx, Activation f, Tensor x, Tensor y) {
  const Extent extent = extent_of({x, y});
  dispatch_activation(f.kind, [&]<class Rule>() {
    dispatch_real(x.dtype(), [&]<class T>() {
      map(ctx, ForwardOf<Rule>{{f.alpha}}, rows_of<T>(y, extent), rows_of<const T>(x, extent));
    });
  });
}

void activate_backward(Context& ctx, Activation f, Tensor x, Tensor dy, Tensor dx) {
  expect_on("activate_backward", ctx.device(), dx);
  expect_shape("activate_backward dy", dy, x.shape());
  expect_shape("activate_backward dx", dx, x.shape());
  expect_alike("activate_backward", {x, dy, dx});
  HCTR_ON_DEVICE(ctx, activate_backward(ctx, f, x, dy, dx));
}

void cpu::activate_backward(Context& ctx, Activation f, Tensor x, Tensor dy, Tensor dx) {
  const Extent extent = extent_of({x, dy, dx});
  dispatch_activation(f.kind, [&]<class Rule>() {
    dispatch_real(x.dtype(), [&]<class T>() {
      map(ctx, BackwardOf<Rule>{{f.alpha}}, rows_of<T>(dx, extent), rows_of<const T>(x, extent),
          rows_of<const T>(dy, extent));
    });
  });
}

}  // namespace hctr::ops
