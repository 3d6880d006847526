// dgrad of a fully connected layer, fused with the ReLU of the upstream layer: a GEMM with ReLU's gradient and the bias
// gradient, in one pass over the result if the device supports it.
#pragma once

#include "core/device/op.h"
#include "ops/common/loss_scale.h"

namespace hctr::ops {

/// Scratch memory for this d_z, of gradient_through_relu() and of every other operator that has a ReluEnd argument.
TensorSpec gradient_through_relu_scratch(const TensorSpec& d_z);

/// d_z = y > 0 ? factor * d_out W^T : 0, and d_bias = the column sums of d_z in a fixed order. y = dropout(max(z, 0))
/// is the input of the GEMM y W, and d_out is the gradient of y W. d_z is the gradient of z; d_bias is the gradient of
/// the bias that z includes. `factor` is dropout_scale(), or 1: see relu_bias_gradient(). Shapes: d_out [batch, out], w
/// [in, out], y and d_z [batch, in], d_bias [in]; any row strides. Dtypes: f32 f16 bf16, all equal; d_bias also f32. In
/// two-byte types, Hopper rounds d_z once; other devices also round the result of the GEMM. If search.found is set,
/// checks y for overflow like find_overflow().
HCTR_OP(void gradient_through_relu(Context&, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z, Tensor d_bias,
                                   Tensor scratch, OverflowSearch search = {}))

namespace hopper {
/// Computes d_z in one kernel, and its column sums per 64 rows: `sums` [ceil(batch / 64), in]. The tensors, including
/// y, must satisfy takes_fused_product(). `search.found` requires searches_beside_product().
void gradient_through_relu(Context&, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z, float* sums,
                           OverflowSearch search);
/// Whether the kernel can check y for overflow. The conditions: y is f16, where an overflowed value is not finite, and
/// the rows of y have no padding elements.
bool searches_beside_product(const Tensor& y);
}  // namespace hopper

}  // namespace hctr::ops
