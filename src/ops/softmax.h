// Softmax over the last dimension, with a mask.
#pragma once

#include <optional>

#include "device/op.h"

namespace hctr::ops {

/// y = exp(z - max z) / sum of exp(z - max z) over the last dimension; z = x, or -10000 where the mask is below 0.5. So what is
/// masked gets 0, and a row that is masked throughout becomes uniform.
/// Shapes: x and y alike, of 2 to 4 dimensions; the mask like x, or with 1 as the second of four dimensions. Dtypes: all alike,
/// f32 f16 bf16. y may be x.
HCTR_OP(void softmax(Context&, Tensor x, std::optional<Tensor> mask, Tensor y))
/// dx = y * (dy - sum of y dy), 0 where masked. Overwrites dx; dx may be dy.
HCTR_OP(void softmax_backward(Context&, Tensor y, std::optional<Tensor> mask, Tensor dy, Tensor dx))

/// Whether a mask of this shape goes with such an x.
bool mask_fits(const Shape& mask, const Shape& x);

}  // namespace hctr::ops
