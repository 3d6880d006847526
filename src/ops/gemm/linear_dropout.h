// A fully connected layer with ReLU and dropout, in one pass over its result if the device supports it.
#pragma once

#include <optional>

#include "core/device/op.h"

namespace hctr::ops {

/// y = dropout(max(x W + bias, 0)), with the mask of dropout(rate, stream). Shapes: x [batch, in], w [in, out], bias
/// [out] and dense, y [batch, out]; any row strides. Dtypes: f32 f16 bf16, all equal. 0 < rate < 1. Needs ctx.state().
/// In two-byte types, Hopper rounds y once; other devices also round before dropout. `transposed`: as in linear().
HCTR_OP(void linear_relu_dropout(Context&, Tensor x, Tensor w, Tensor bias, float rate, uint64_t stream, Tensor y,
                                 std::optional<Tensor> transposed = {}))

namespace hopper {
/// linear_relu_dropout() as one kernel, for tensors that satisfy takes_fused_product(). For f32, w is transposed: [out,
/// in].
void linear_relu_dropout(Context&, Tensor x, Tensor w, Tensor bias, float rate, uint64_t stream, Tensor y);
/// linear_relu_dropout() without dropout.
void linear_relu(Context&, Tensor x, Tensor w, Tensor bias, Tensor y);
}  // namespace hopper

}  // namespace hctr::ops
