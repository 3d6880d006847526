// Sums along one axis, and their gradients.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// y = factor * sum of x along the axis, summed in f32; the axis keeps size 1. factor 1 / size gives the mean.
/// Shapes: x [n0, n1] or [n0, n1, n2]; y the same with y.dim(axis) = 1. Dtypes: f32 f16 bf16.
HCTR_OP(void sum_axis(Context&, Tensor x, int axis, float factor, Tensor y))
/// dx = factor * dy, broadcast along the axis. Overwrites dx.
HCTR_OP(void spread_axis(Context&, Tensor dy, int axis, float factor, Tensor dx))

/// sums[j] = sum over rows of x[., j], in a fixed order. On the CPU 128 rows at a time are summed first, which rounds
/// less over many rows than sum_axis. Shapes: x [rows, n], sums [n], dense. Dtypes: x f32 f16 bf16; sums as x, or f32.
HCTR_OP(void sum_rows(Context&, Tensor x, Tensor sums))

}  // namespace hctr::ops
