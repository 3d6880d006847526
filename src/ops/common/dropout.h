// Dropout whose mask is a pure function of seed, layer, step and element and is not stored.
#pragma once

#include <cstdint>

#include "core/device/op.h"

namespace hctr::ops {

/// y = keep ? x / (1 - rate) : 0, where keep means u >= rate for a uniform u of [0, 1) drawn for
/// (seed, stream, step, row among those of all ranks, column): the same on every device and rank count. u has 16 bits,
/// and rate is rounded to them.
/// Shapes: x and y alike, rows are samples. Dtypes: f32 f16 bf16. 0 < rate < 1. Needs ctx.state(). y may be x.
/// Source: N. Srivastava et al., "Dropout", JMLR 15 (2014).
HCTR_OP(void dropout(Context&, float rate, uint64_t stream, Tensor x, Tensor y))
/// dx = keep ? dy / (1 - rate) : 0: the same function with the same mask, given the same state.
void dropout_backward(Context&, float rate, uint64_t stream, Tensor dy, Tensor dx);

/// 1 / (1 - rate), rounded as both of them do.
float dropout_scale(float rate);

}  // namespace hctr::ops
