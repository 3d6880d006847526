// Sums along one axis, and the spreading of a gradient back along it.
#pragma once

#include "device/op.h"

namespace hctr::ops {

/// y = factor * sum of x along the axis, kept in f32; the axis stays with size 1. factor 1 / size gives the mean.
/// Shapes: x [n0, n1] or [n0, n1, n2]; y the same with y.dim(axis) = 1. Dtypes: f32 f16 bf16.
HCTR_OP(void sum_axis(Context&, Tensor x, int axis, float factor, Tensor y))
/// dx = factor * dy, the same all along the axis. Overwrites dx.
HCTR_OP(void spread_axis(Context&, Tensor dy, int axis, float factor, Tensor dx))

}  // namespace hctr::ops
