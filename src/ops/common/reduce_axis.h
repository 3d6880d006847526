// Sums along one axis, and their gradients.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// y = factor * sum of x along the axis, summed in f32; y keeps the axis with size 1. The factor 1 / size gives the
/// mean. Shapes: x [n0, n1] or [n0, n1, n2]; y as x, with y.dim(axis) = 1. Dtypes: f32 f16 bf16.
HCTR_OP(void sum_axis(Context&, Tensor x, int axis, float factor, Tensor y))
/// dx = factor * dy, broadcast along the axis. Overwrites dx.
HCTR_OP(void spread_axis(Context&, Tensor dy, int axis, float factor, Tensor dx))

/// sums[j] = the sum of x[b, j] over rows b, in a fixed order. The CPU first sums blocks of 128 rows, so its rounding
/// error is smaller than that of sum_axis(). Shapes: x [rows, n], sums [n], dense. Dtypes: x f32 f16 bf16; sums as x,
/// or f32.
HCTR_OP(void sum_rows(Context&, Tensor x, Tensor sums))

}  // namespace hctr::ops
