// Dice: an activation that is linear on either side of the batch mean, with a smooth step between. Sums over rows are
// small tensors, so that they can be summed over ranks between the calls. Source: G. Zhou et al., "Deep Interest
// Network for Click-Through Rate Prediction", KDD 2018, equation 5.
#pragma once

#include "core/device/op.h"
#include "ops/common/columns.h"

namespace hctr::ops {

/// start = (rows * first row, rows), with the number of rows that hold samples. Summed over ranks, start / start[n] is
/// an average of the ranks' first rows, equal on all ranks: a shift close enough to the mean to keep the variance
/// exact. Shapes: x [batch, n], start [n + 1]. Dtypes: x f32 f16 bf16; start f32. Needs ctx.state().
HCTR_OP(void dice_start(Context&, Tensor x, Tensor start))
/// sums[0] = sum of x - start / start[n], sums[1] = sum of its squares, per column over the rows that hold samples.
/// Shapes: scratch column_sums_scratch(n), sums [2, n]. Dtypes: sums f32. Needs ctx.state().
HCTR_OP(void dice_sums(Context&, Tensor x, Tensor start, Tensor scratch, Tensor sums))
/// From the start and the sums of all ranks, batch[0] = mean, batch[1] = 1 / sqrt(biased variance + eps) of each
/// column. Before the call, `batch` holds the sums.
HCTR_OP(void dice_statistics(Context&, Tensor start, float eps, Tensor batch))
/// y = p x + (1 - p) alpha x, p = 1 / (1 + exp(-(x - batch[0]) batch[1])), in every row. Dtypes: x and y alike.
HCTR_OP(void dice(Context&, Tensor x, float alpha, Tensor batch, Tensor y))
/// With hat = (x - batch[0]) batch[1] and g = dy x (1 - alpha) p (1 - p), the gradient at hat: d_sums[0] = sum of g,
/// d_sums[1] = sum of g hat, per column over the rows that hold samples. Shapes: d_sums [2, n]. Dtypes: d_sums f32.
HCTR_OP(void dice_backward_sums(Context&, Tensor x, Tensor dy, float alpha, Tensor batch, Tensor scratch,
                                Tensor d_sums))
/// dx = dy (p + (1 - p) alpha) + batch[1] (g - (d_sums[0] + hat d_sums[1]) / start[n]) in rows that hold samples, 0 in
/// the others. start and d_sums are of all ranks, as the statistics were. Overwrites dx.
HCTR_OP(void dice_backward(Context&, Tensor x, Tensor dy, float alpha, Tensor start, Tensor batch, Tensor d_sums,
                           Tensor dx))

}  // namespace hctr::ops
