// Gradient clipping by the global norm.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// g *= min(1, most / n), where n = sqrt(squares[0]) / loss_scale is the norm of all gradients of the step. A NaN norm
/// changes nothing. Shapes: squares [1], g any dense tensor. Dtypes: f32. Needs ctx.state().
HCTR_OP(void clip_to_norm(Context&, float most, Tensor squares, Tensor g))

}  // namespace hctr::ops
