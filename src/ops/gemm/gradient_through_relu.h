// dgrad of a fully connected layer through the ReLU that ends the layer below: a GEMM with ReLU's gradient and the bias
// gradient, in one pass over the result if the device can.
#pragma once

#include "core/device/op.h"
#include "ops/common/loss_scale.h"

namespace hctr::ops {

/// Scratch memory for this d_z of gradient_through_relu(), and of every operator with a ReluEnd.
TensorSpec gradient_through_relu_scratch(const TensorSpec& d_z);

/// d_z = y > 0 ? factor * d_out W^T : 0, and d_bias = the sums of the columns of d_z in a fixed order. These are the
/// gradients of the z and the bias of y = dropout(max(z, 0)), when y is the input of a GEMM y W whose result has the
/// gradient d_out. `factor` is dropout_scale(), or 1: see relu_bias_gradient().
/// Shapes: d_out [batch, out], w [in, out], y and d_z [batch, in], d_bias [in]; any row strides. Dtypes: f32 f16 bf16,
/// all alike, d_bias also f32. On Hopper d_z is rounded once in the two-byte types, elsewhere the GEMM too.
/// Searches y for overflow, as find_overflow() does, if search.found is set.
HCTR_OP(void gradient_through_relu(Context&, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z, Tensor d_bias,
                                   Tensor scratch, OverflowSearch search = {}))

namespace hopper {
/// d_z in one kernel, and in `sums` those of its columns for 64 rows each, [ceil(batch / 64), in]. For tensors that
/// takes_fused_product(), y too. With `search.found` only where searches_beside_product().
void gradient_through_relu(Context&, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z, float* sums,
                           OverflowSearch search);
/// Whether the kernel can check such a y for overflow: f16, where overflow means not finite, and no elements after its
/// rows.
bool searches_beside_product(const Tensor& y);
}  // namespace hopper

}  // namespace hctr::ops
