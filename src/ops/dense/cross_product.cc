#include "ops/dense/cross_product.h"

#include <algorithm>

#include "ops/dense/cross_gate.h"
#include "ops/gemm/bias_gradient.h"
#include "ops/gemm/linear.h"

namespace hctr::ops {

TensorSpec cross_product_scratch(int64_t batch, int64_t columns) {
  const TensorSpec of_gate = bias_gradient_scratch(columns);
  return TensorSpec(DType::f32, {std::max((batch + 63) / 64 * columns, of_gate.shape.elements())});
}

void cross_product(Context& ctx, Tensor a, Tensor w, Tensor bias, Tensor x, Tensor skip, Tensor t, Tensor y) {
  expect_on("cross_product", ctx.device(), y);
  expect_shape("cross_product w", w, {a.dim(1), y.dim(1)});
  expect_shape("cross_product a", a, {y.dim(0), w.dim(0)});
  expect_shape("cross_product bias", bias, {y.dim(1)});
  for (const Tensor& of_y : {x, skip, t}) expect_shape("cross_product x, skip, t", of_y, y.shape());
  expect_alike("cross_product", {a, w, bias, x, skip, t, y});
  HCTR_ON_DEVICE(ctx, cross_product(ctx, a, w, bias, x, skip, t, y));
}

void cpu::cross_product(Context& ctx, Tensor a, Tensor w, Tensor bias, Tensor x, Tensor skip, Tensor t, Tensor y) {
  ops::linear(ctx, a, w, bias, t);
  ops::cross_gate(ctx, x, t, skip, y);
}

void cross_product_backward(Context& ctx, Tensor d_a, Tensor w, Tensor addend, Tensor x, Tensor d_y, Tensor d_t,
                            Tensor d_bias, Tensor scratch) {
  expect_on("cross_product_backward", ctx.device(), d_y);
  expect_shape("cross_product_backward w", w, {d_y.dim(1), d_a.dim(1)});
  expect_shape("cross_product_backward d_a", d_a, {d_y.dim(0), w.dim(1)});
  for (const Tensor& of_y : {addend, x, d_t}) expect_shape("cross_product_backward addend, x, d_t", of_y, d_y.shape());
  expect_shape("cross_product_backward d_bias", d_bias, {d_y.dim(1)});
  expect_alike("cross_product_backward", {d_a, w, addend, x, d_y, d_t});
  HCTR_EXPECT(scratch.elements() >= cross_product_scratch(d_y.dim(0), d_y.dim(1)).shape.elements(),
              "cross_product_backward() needs more scratch memory");
  HCTR_ON_DEVICE(ctx, cross_product_backward(ctx, d_a, w, addend, x, d_y, d_t, d_bias, scratch));
}

void cpu::cross_product_backward(Context& ctx, Tensor d_a, Tensor w, Tensor addend, Tensor x, Tensor d_y, Tensor d_t,
                                 Tensor d_bias, Tensor scratch) {
  ops::matmul_plus(ctx, d_a, Transpose::no, w, Transpose::yes, addend, d_y);
  ops::cross_gate_backward(ctx, x, d_y, d_t, d_bias, scratch);
}

}  // namespace hctr::ops
