// Batch normalization of columns, forward and backward: sums over the batch, statistics from the sums, normalization.
// The sums are a separate small tensor, so that an all-reduce can add them over ranks before the statistics are
// computed. Source: S. Ioffe and C. Szegedy, "Batch Normalization", ICML 2015, Algorithms 1 and 2, and section 3 for
// the gradients.
#pragma once

#include "core/device/op.h"
#include "ops/common/columns.h"

namespace hctr::ops {

/// Moving averages over training batches. `mean` and `var` [n] start at 0; each batch sets average = (1 - factor) *
/// average + factor * batch value. `weight` [1] is the moving average of the constant 1. mean / weight and var / weight
/// are therefore unbiased from the first batch on. All f32.
struct RunningStatistics {
  Tensor mean, var, weight;
};

/// sums = (per column the sum of x - shift, per column the sum of (x - shift)^2, number of rows), over rows with a
/// sample. `shift` is the running mean, which is equal on all ranks. With this shift, the variance is accurate even if
/// the mean is large. Shapes: x [batch, n], scratch column_sums_scratch(n), sums [2n + 1]. Dtypes: x f32 f16 bf16;
/// others f32. Needs ctx.state(). Cost: one pass over x.
HCTR_OP(void batch_norm_sums(Context&, Tensor x, RunningStatistics, Tensor scratch, Tensor sums))

/// Computes batch[0] = mean and batch[1] = 1 / sqrt(var + eps) from the sums of all ranks, with the biased variance.
/// Updates the running averages with the mean and the unbiased variance; a batch without rows leaves the averages
/// unchanged. Shapes: sums [2n + 1], batch [2, n]. Dtypes: f32.
HCTR_OP(void batch_norm_statistics(Context&, Tensor sums, float factor, float eps, RunningStatistics, Tensor batch))

/// The statistics for evaluation: batch[0] = mean / weight, batch[1] = 1 / sqrt(var / weight + eps). Before the first
/// training batch: 0 and 1 / sqrt(1 + eps).
HCTR_OP(void batch_norm_running(Context&, RunningStatistics, float eps, Tensor batch))

/// y = gamma * (x - batch[0]) * batch[1] + beta, in every row. Shapes: x and y [batch, n], gamma and beta [n]. Dtypes:
/// x, gamma, beta, y equal, f32 f16 bf16.
HCTR_OP(void batch_norm_apply(Context&, Tensor x, Tensor batch, Tensor gamma, Tensor beta, Tensor y))

/// The gradients of beta and gamma: d_sums[0] = sum of dy, d_sums[1] = sum of dy * (x - batch[0]) * batch[1], per
/// column over rows with a sample. Shapes: scratch column_sums_scratch(n), d_sums [2, n]. Dtypes: d_sums f32.
HCTR_OP(void batch_norm_backward_sums(Context&, Tensor x, Tensor dy, Tensor batch, Tensor scratch, Tensor d_sums))

/// dx = gamma * batch[1] * (dy - (d_sums[0] + xhat * d_sums[1]) / rows), where xhat = (x - batch[0]) * batch[1] and
/// rows is the row count in `sums`. Rows without a sample get 0. `sums` and `d_sums` are sums over all ranks.
/// Overwrites dx.
HCTR_OP(void batch_norm_backward(Context&, Tensor x, Tensor dy, Tensor batch, Tensor gamma, Tensor sums, Tensor d_sums,
                                 Tensor dx))

}  // namespace hctr::ops
