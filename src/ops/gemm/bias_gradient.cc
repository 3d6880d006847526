#include "ops/gemm/bias_gradient.h"

#include "ops/common/element_loops.h"
#include "ops/common/reduce_axis.h"
#include "ops/gemm/bias_gradient_parts.h"

namespace hctr::ops {

TensorSpec bias_gradient_scratch(int64_t columns) { return TensorSpec(DType::f32, {kMostRowParts * columns}); }

namespace {

/// The rule of relu_bias_gradient(): d_z from y and d_y.
struct ReluGradient {
  float factor;
  template <class A>
  A operator()(A y, A d_y) const {
    return relu_gradient(static_cast<A>(factor), y, d_y);
  }
};

}  // namespace

void bias_gradient(Context& ctx, Tensor d_z, Tensor d_bias, Tensor scratch) {
  expect_bias_gradient("bias_gradient", ctx, d_z, d_bias, scratch);
  HCTR_ON_DEVICE(ctx, bias_gradient(ctx, d_z, d_bias, scratch));
}

void relu_bias_gradient(Context& ctx, float factor, Tensor y, Tensor d_y, Tensor d_z, Tensor d_bias, Tensor scratch) {
  expect_bias_gradient("relu_bias_gradient", ctx, d_z, d_bias, scratch);
  expect_shape("relu_bias_gradient y", y, d_z.shape());
  expect_shape("relu_bias_gradient d_y", d_y, d_z.shape());
  expect_alike("relu_bias_gradient", {y, d_y, d_z});
  HCTR_ON_DEVICE(ctx, relu_bias_gradient(ctx, factor, y, d_y, d_z, d_bias, scratch));
}

void cpu::bias_gradient(Context& ctx, Tensor d_z, Tensor d_bias, Tensor) { cpu::sum_rows(ctx, d_z, d_bias); }

void cpu::relu_bias_gradient(Context& ctx, float factor, Tensor y, Tensor d_y, Tensor d_z, Tensor d_bias, Tensor) {
  const Extent extent = extent_of({y, d_y, d_z});
  dispatch_real(y.dtype(), [&]<class T>() {
    map(ctx, ReluGradient{factor}, rows_of<T>(d_z, extent), rows_of<const T>(y, extent), rows_of<const T>(d_y, extent));
  });
  cpu::sum_rows(ctx, d_z, d_bias);
}

}  // namespace hctr::ops
