// Gradient clipping by the norm of all gradients together.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// g *= min(1, most / n), n = sqrt(squares[0]) / loss_scale: the gradients of a step keep their direction. A norm that
/// is NaN changes nothing. Shapes: squares [1], g any dense tensor. Dtypes: f32. Needs ctx.state().
HCTR_OP(void clip_to_norm(Context&, float most, Tensor squares, Tensor g))

}  // namespace hctr::ops
