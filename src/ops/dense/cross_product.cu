// Dispatches the GEMMs of cross layers: one fused kernel on Hopper for two-byte types, else separate operators.
#include "ops/dense/cross_product.h"

#include "core/device/profiler.h"
#include "ops/common/part_totals.cuh"
#include "ops/dense/cross_gate.h"
#include "ops/gemm/fused_product.h"
#include "ops/gemm/linear.h"

namespace hctr::ops {
namespace {

constexpr int64_t kDeepestGated = 1024;  // for a larger k, the gated GEMM loses more time than the fused passes save

/// Whether the fused kernel supports these tensors: GEMM operand `a`, and `others` with the shape of `result`.
bool takes_gated_product(Context& ctx, const Tensor& a, std::initializer_list<Tensor> others, const Tensor& result) {
  return size_of(result.dtype()) == 2 && result.dim(1) % 8 == 0 && a.dim(1) <= kDeepestGated &&
         hopper::takes_fused_product(ctx, {a}, result) && hopper::takes_fused_product(ctx, others, result);
}

void count_flops_of(Context& ctx, const Tensor& a, const Tensor& result) {
  count_flops(ctx, 2.0 * static_cast<double>(a.elements()) * static_cast<double>(result.dim(1)));
}

}  // namespace

void cuda::cross_product(Context& ctx, Tensor a, Tensor w, Tensor bias, Tensor x, Tensor skip, Tensor t, Tensor y) {
  if (bias.dense() && reinterpret_cast<uintptr_t>(bias.bytes()) % 4 == 0 &&
      takes_gated_product(ctx, a, {w, x, skip, t}, y)) {
    count_flops_of(ctx, a, y);
    return hopper::cross_product(ctx, a, w, bias, x, skip, t, y);
  }
  ops::linear(ctx, a, w, bias, t);
  ops::cross_gate(ctx, x, t, skip, y);
}

void cuda::cross_product_backward(Context& ctx, Tensor d_a, Tensor w, Tensor addend, Tensor x, Tensor d_y, Tensor d_t,
                                  Tensor d_bias, Tensor scratch) {
  if (takes_gated_product(ctx, d_a, {w, addend, x, d_t}, d_y)) {
    count_flops_of(ctx, d_a, d_y);
    float* sums = scratch.data<float>();
    hopper::cross_product_backward(ctx, d_a, w, addend, x, d_y, d_t, sums);
    return dispatch_float(d_bias.dtype(),
                          [&]<class Out>() { add_bias_parts<Out>(ctx, sums, (d_y.dim(0) + 63) / 64, d_bias); });
  }
  ops::matmul_plus(ctx, d_a, Transpose::no, w, Transpose::yes, addend, d_y);
  ops::cross_gate_backward(ctx, x, d_y, d_t, d_bias, scratch);
}

}  // namespace hctr::ops
