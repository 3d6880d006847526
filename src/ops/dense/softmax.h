// Softmax over the last dimension, with a mask.
#pragma once

#include <optional>

#include "core/device/op.h"

namespace hctr::ops {

/// y = exp(z - max z) / sum of exp(z - max z) over the last dimension. z = x, or -10000 where the mask is below 0.5.
/// Masked elements get 0, and a fully masked row becomes uniform. Shapes: x and y equal, 2 to 4 dimensions;
/// mask_fits(mask, x). Dtypes: all equal, f32 f16 bf16. y may be x.
HCTR_OP(void softmax(Context&, Tensor x, std::optional<Tensor> mask, Tensor y))
/// dx = y * (dy - sum of y dy), 0 where masked. Overwrites dx; dx may be dy.
HCTR_OP(void softmax_backward(Context&, Tensor y, std::optional<Tensor> mask, Tensor dy, Tensor dx))

/// Inserts dimensions of size 1: [b, n] becomes [b, 1, 1, n], and [b, m, n] becomes [b, 1, m, n].
Shape with_ones(const Shape&);
/// Whether the mask's shape fits x. Requires that with_ones(mask) equals with_ones(x), except that the two middle
/// dimensions may be 1.
bool mask_fits(const Shape& mask, const Shape& x);

}  // namespace hctr::ops
