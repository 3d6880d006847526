// The GEMMs of a cross layer in matrix form (DCN v2) with gates in the epilogue, if the device can:
// ops/dense/cross_gate.h has the formulas.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// t = a w + bias, rounded to its dtype, and y = x * t + skip: linear() and cross_gate().
/// Shapes: a [batch, in], w [in, n], bias [n] and dense, x, skip, t, y [batch, n]; any row strides. Dtypes: f32 f16
/// bf16, all alike. Aliasing: t and y are none of the others; x may be skip.
HCTR_OP(void cross_product(Context&, Tensor a, Tensor w, Tensor bias, Tensor x, Tensor skip, Tensor t, Tensor y))

/// d_y = d_a w^T + addend and, for the layer before, d_t = d_y * x, both rounded to their dtype, and d_bias = the sums
/// of the columns of d_t in a fixed order: matmul_plus() and cross_gate_backward().
/// Shapes: d_a [batch, in], w [n, in], addend, x, d_y, d_t [batch, n], any row strides; d_bias [n]; scratch as
/// cross_product_scratch(). Dtypes: f32 f16 bf16, all alike; d_bias as they, or f32. Aliasing: d_y and d_t are none of
/// the others.
HCTR_OP(void cross_product_backward(Context&, Tensor d_a, Tensor w, Tensor addend, Tensor x, Tensor d_y, Tensor d_t,
                                    Tensor d_bias, Tensor scratch))
/// For this many samples and columns.
TensorSpec cross_product_scratch(int64_t batch, int64_t columns);

namespace hopper {
/// The same in one kernel, in two-byte types, for tensors that satisfy takes_fused_product() and columns in whole 16
/// bytes.
void cross_product(Context&, Tensor a, Tensor w, Tensor bias, Tensor x, Tensor skip, Tensor t, Tensor y);
/// `sums`: those of the columns of d_t for 64 rows each, [ceil(batch / 64), n].
void cross_product_backward(Context&, Tensor d_a, Tensor w, Tensor addend, Tensor x, Tensor d_y, Tensor d_t,
                            float* sums);
}  // namespace hopper

}  // namespace hctr::ops
