// Softmax over the last dimension, with a mask.
#pragma once

#include <optional>

#include "core/device/op.h"

namespace hctr::ops {

/// y = exp(z - max z) / sum of exp(z - max z) over the last dimension; z = x, or -10000 where the mask is below 0.5:
/// masked elements get 0, and a row that is masked entirely becomes uniform. Shapes: x and y alike, of 2 to 4
/// dimensions; the mask as mask_fits() says. Dtypes: all alike, f32 f16 bf16. y may be x.
HCTR_OP(void softmax(Context&, Tensor x, std::optional<Tensor> mask, Tensor y))
/// dx = y * (dy - sum of y dy), 0 where masked. Overwrites dx; dx may be dy.
HCTR_OP(void softmax_backward(Context&, Tensor y, std::optional<Tensor> mask, Tensor dy, Tensor dx))

/// [b, n] as [b, 1, 1, n], [b, m, n] as [b, 1, m, n].
Shape with_ones(const Shape&);
/// Whether a mask of this shape fits x: with_ones(mask) is with_ones(x), or has size 1 in the two middle dimensions.
bool mask_fits(const Shape& mask, const Shape& x);

}  // namespace hctr::ops
