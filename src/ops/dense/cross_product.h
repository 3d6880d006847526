// The GEMMs of a cross layer in matrix form (DCN v2), with the gate in the epilogue if the device supports it.
// ops/dense/cross_gate.h has the formulas.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// t = a w + bias, rounded to its dtype, and y = x * t + skip: linear() followed by cross_gate(). Shapes: a [batch,
/// in], w [in, n], bias [n] and dense, x, skip, t, y [batch, n]; any row strides. Dtypes: f32 f16 bf16, all equal.
/// Aliasing: t and y must not alias an input or each other; x may be skip.
HCTR_OP(void cross_product(Context&, Tensor a, Tensor w, Tensor bias, Tensor x, Tensor skip, Tensor t, Tensor y))

/// d_y = d_a w^T + addend. For the layer before: d_t = d_y * x, and d_bias = the column sums of d_t in a fixed order.
/// d_y and d_t are rounded to their dtype. Equals matmul_plus() followed by cross_gate_backward(). Shapes: d_a [batch,
/// in], w [n, in], addend, x, d_y, d_t [batch, n], any row strides; d_bias [n]; scratch as cross_product_scratch().
/// Dtypes: f32 f16 bf16, all equal; d_bias the same, or f32. Aliasing: d_y and d_t must not alias an input or each
/// other.
HCTR_OP(void cross_product_backward(Context&, Tensor d_a, Tensor w, Tensor addend, Tensor x, Tensor d_y, Tensor d_t,
                                    Tensor d_bias, Tensor scratch))
/// Scratch of cross_product_backward() for `batch` samples and `columns` columns.
TensorSpec cross_product_scratch(int64_t batch, int64_t columns);

namespace hopper {
/// Computes ops::cross_product() in one kernel, for two-byte types. The tensors must satisfy takes_fused_product(), and
/// rows must be multiples of 16 bytes.
void cross_product(Context&, Tensor a, Tensor w, Tensor bias, Tensor x, Tensor skip, Tensor t, Tensor y);
/// Computes ops::cross_product_backward() in one kernel. `sums` [ceil(batch / 64), n] gets the column sums of d_t per
/// 64 rows.
void cross_product_backward(Context&, Tensor d_a, Tensor w, Tensor addend, Tensor x, Tensor d_y, Tensor d_t,
                            float* sums);
}  // namespace hopper

}  // namespace hctr::ops
