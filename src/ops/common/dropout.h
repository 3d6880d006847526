// Dropout. The mask is not stored, because it is a pure function of seed, layer, step and element.
#pragma once

#include <cstdint>

#include "core/device/op.h"

namespace hctr::ops {

/// y = keep ? x / (1 - rate) : 0, where keep means u >= rate for a uniform u in [0, 1). u is a function of (seed,
/// stream, step, row number over all ranks, column), so the mask is equal on every device and for every rank count. u
/// has 16 bits, and rate is rounded to 16 bits. Shapes: x and y equal; rows are samples. Dtypes: f32 f16 bf16. `rate`
/// is in (0, 1). Needs ctx.state(). y may be x. Source: N. Srivastava et al., "Dropout", JMLR 15 (2014).
HCTR_OP(void dropout(Context&, float rate, uint64_t stream, Tensor x, Tensor y))
/// dx = keep ? dy / (1 - rate) : 0. The mask equals that of dropout() if ctx.state() is the same.
void dropout_backward(Context&, float rate, uint64_t stream, Tensor dy, Tensor dx);

/// The scale 1 / (1 - rate) that dropout() and dropout_backward() apply, after rounding rate to 16 bits.
float dropout_scale(float rate);

}  // namespace hctr::ops
