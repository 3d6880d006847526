#include "ops/gemm/gradient_through_relu.h"

#include <algorithm>

#include "ops/gemm/bias_gradient.h"
#include "ops/gemm/bias_gradient_parts.h"
#include "ops/gemm/linear.h"

namespace hctr::ops {

TensorSpec gradient_through_relu_scratch(const TensorSpec& d_z) {
  const int64_t parts = std::max({(d_z.rows() + 63) / 64, kMostRowParts, kMostBlockParts});
  return TensorSpec(DType::f32, {parts * d_z.row_elements()});
}

void gradient_through_relu(Context& ctx, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z, Tensor d_bias,
                           Tensor scratch, OverflowSearch search) {
  expect_on("gradient_through_relu", ctx.device(), d_z);
  expect_shape("gradient_through_relu d_z", d_z, {d_out.dim(0), w.dim(0)});
  expect_shape("gradient_through_relu y", y, d_z.shape());
  expect_shape("gradient_through_relu d_out", d_out, {d_z.dim(0), w.dim(1)});
  expect_shape("gradient_through_relu d_bias", d_bias, {w.dim(0)});
  expect_alike("gradient_through_relu", {d_out, w, y, d_z});
  HCTR_EXPECT(scratch.elements() >= gradient_through_relu_scratch(d_z.spec()).shape.elements(),
              "gradient_through_relu() needs more scratch memory");
  HCTR_ON_DEVICE(ctx, gradient_through_relu(ctx, d_out, w, factor, y, d_z, d_bias, scratch, search));
}

void cpu::gradient_through_relu(Context& ctx, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z, Tensor d_bias,
                                Tensor scratch, OverflowSearch search) {
  if (search.found) cpu::find_overflow(ctx, y, search);
  ops::matmul(ctx, d_out, Transpose::no, w, Transpose::yes, d_z);
  ops::relu_bias_gradient(ctx, factor, y, d_z, d_z, d_bias, scratch);
}

}  // namespace hctr::ops
