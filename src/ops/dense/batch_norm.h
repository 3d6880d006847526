// Batch normalization of columns, forward and backward: sums over the batch, statistics from the sums, normalization.
// The sums are one small tensor, so that they can be summed over ranks before the statistics are computed.
// Source: S. Ioffe and C. Szegedy, "Batch Normalization", ICML 2015, Algorithms 1 and 2, and section 3 for the
// gradients.
#pragma once

#include "core/device/op.h"
#include "ops/common/columns.h"

namespace hctr::ops {

/// Moving averages over the batches so far: mean and var [n] start at 0 and become (1 - factor) * old + factor * batch;
/// weight [1] is the same average of ones, so that mean / weight and var / weight are unbiased from the first batch on.
/// f32.
struct RunningStatistics {
  Tensor mean, var, weight;
};

/// sums = (sum of x - shift per column, sum of its squares per column, number of rows) over the rows that hold samples.
/// shift is the running mean, equal on all ranks: it keeps the variance exact where the mean is large.
/// Shapes: x [batch, n], scratch column_sums_scratch(n), sums [2n + 1]. Dtypes: x f32 f16 bf16; the others f32. Needs
/// ctx.state(). Cost: one pass over x.
HCTR_OP(void batch_norm_sums(Context&, Tensor x, RunningStatistics, Tensor scratch, Tensor sums))

/// From the sums of all ranks: batch[0] = mean, batch[1] = 1 / sqrt(var + eps) with the biased variance; the running
/// averages are updated with the mean and the unbiased variance. A batch without rows does not change them.
/// Shapes: sums [2n + 1], batch [2, n]. Dtypes: f32.
HCTR_OP(void batch_norm_statistics(Context&, Tensor sums, float factor, float eps, RunningStatistics, Tensor batch))

/// For evaluation: batch[0] = mean / weight, batch[1] = 1 / sqrt(var / weight + eps); before any batch 0 and 1 / sqrt(1
/// + eps).
HCTR_OP(void batch_norm_running(Context&, RunningStatistics, float eps, Tensor batch))

/// y = gamma * (x - batch[0]) * batch[1] + beta, in every row.
/// Shapes: x and y [batch, n], gamma and beta [n]. Dtypes: x, gamma, beta, y alike, f32 f16 bf16.
HCTR_OP(void batch_norm_apply(Context&, Tensor x, Tensor batch, Tensor gamma, Tensor beta, Tensor y))

/// d_sums[0] = sum of dy, d_sums[1] = sum of dy * (x - batch[0]) * batch[1], per column over the rows that hold
/// samples: the gradients of beta and gamma. Shapes: scratch column_sums_scratch(n), d_sums [2, n]. Dtypes: d_sums f32.
HCTR_OP(void batch_norm_backward_sums(Context&, Tensor x, Tensor dy, Tensor batch, Tensor scratch, Tensor d_sums))

/// dx = gamma * batch[1] * (dy - (d_sums[0] + xhat * d_sums[1]) / rows), xhat = (x - batch[0]) * batch[1], with the
/// rows that `sums` counts; 0 in rows that hold no sample. d_sums are of all ranks, as sums were. Overwrites dx.
HCTR_OP(void batch_norm_backward(Context&, Tensor x, Tensor dy, Tensor batch, Tensor gamma, Tensor sums, Tensor d_sums,
                                 Tensor dx))

}  // namespace hctr::ops
