// Layer normalization: every row of the last dimension is normalized to mean 0 and variance 1, then scaled and shifted.
// Source: J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer Normalization", arXiv 1607.06450.
#pragma once

#include "core/device/op.h"
#include "ops/common/columns.h"

namespace hctr::ops {

/// y = gamma * (x - mean) * rstd + beta, where mean is the row's mean and rstd = 1 / sqrt(biased variance + eps).
/// Writes mean and rstd to `stats`. Shapes: x and y equal, 2 to 4 dimensions, the last is n; gamma and beta [n]; stats
/// layer_norm_stats(x). Dtypes: x, gamma, beta, y equal, f32 f16 bf16; stats f32.
HCTR_OP(void layer_norm(Context&, Tensor x, Tensor gamma, Tensor beta, float eps, Tensor stats, Tensor y))
/// dx = rstd * (g - mean of g - xhat * mean of g xhat), where g = gamma dy and xhat = (x - mean) * rstd. Overwrites dx;
/// dx may be dy.
HCTR_OP(void layer_norm_backward(Context&, Tensor x, Tensor dy, Tensor gamma, Tensor stats, Tensor dx))
/// d_gamma = sum of dy xhat, d_beta = sum of dy, over all rows. Shapes: scratch column_sums_scratch(n), d_gamma and
/// d_beta [n]. Dtypes: d_gamma and d_beta f32.
HCTR_OP(void layer_norm_weight_gradients(Context&, Tensor x, Tensor dy, Tensor stats, Tensor scratch, Tensor d_gamma,
                                         Tensor d_beta))

/// The spec of `stats`: a mean and an rstd for every row of the last dimension.
TensorSpec layer_norm_stats(const TensorSpec& x);

}  // namespace hctr::ops
