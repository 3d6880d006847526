// Dice: an activation that is linear on either side of the batch mean, with a smooth transition. Sums over rows are
// small tensors, so that an all-reduce can add them over ranks between the calls. Source: G. Zhou et al., "Deep
// Interest Network for Click-Through Rate Prediction", KDD 2018, equation 5.
#pragma once

#include "core/device/op.h"
#include "ops/common/columns.h"

namespace hctr::ops {

/// start = (rows * first row of x, rows), where rows is the number of rows with a sample. After an all-reduce, start /
/// start[n] is an average of the ranks' first rows. This shift is equal on all ranks, and close enough to the mean to
/// keep the variance accurate. Shapes: x [batch, n], start [n + 1]. Dtypes: x f32 f16 bf16; start f32. Needs
/// ctx.state().
HCTR_OP(void dice_start(Context&, Tensor x, Tensor start))
/// sums[0] = sum of x - shift and sums[1] = sum of (x - shift)^2 with shift = start / start[n], per column over rows
/// with a sample. Shapes: scratch column_sums_scratch(n), sums [2, n]. Dtypes: sums f32. Needs ctx.state().
HCTR_OP(void dice_sums(Context&, Tensor x, Tensor start, Tensor scratch, Tensor sums))
/// Computes batch[0] = mean and batch[1] = 1 / sqrt(biased variance + eps) per column, from `start` and the sums of all
/// ranks. On entry, `batch` contains the sums.
HCTR_OP(void dice_statistics(Context&, Tensor start, float eps, Tensor batch))
/// y = p x + (1 - p) alpha x with p = 1 / (1 + exp(-(x - batch[0]) batch[1])), in every row. Dtypes: x and y equal.
HCTR_OP(void dice(Context&, Tensor x, float alpha, Tensor batch, Tensor y))
/// d_sums[0] = sum of g and d_sums[1] = sum of g hat, per column over rows with a sample. hat = (x - batch[0])
/// batch[1], and g = dy x (1 - alpha) p (1 - p) is the gradient of hat. Shapes: d_sums [2, n]. Dtypes: d_sums f32.
HCTR_OP(void dice_backward_sums(Context&, Tensor x, Tensor dy, float alpha, Tensor batch, Tensor scratch,
                                Tensor d_sums))
/// dx = dy (p + (1 - p) alpha) + batch[1] (g - (d_sums[0] + hat d_sums[1]) / start[n]); rows without a sample get 0.
/// `start` and `d_sums` are sums over all ranks. Overwrites dx.
HCTR_OP(void dice_backward(Context&, Tensor x, Tensor dy, float alpha, Tensor start, Tensor batch, Tensor d_sums,
                           Tensor dx))

}  // namespace hctr::ops
