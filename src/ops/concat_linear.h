// A fully connected layer with one output over several inputs side by side, which are read where they are.
#pragma once

#include <optional>
#include <vector>

#include "device/op.h"

namespace hctr::ops {

inline constexpr size_t kMostConcatParts = 8;

/// y = [x_0 | x_1 | ...] w + bias, sums kept in f32. Without a copy of the inputs, and with wide loads of each whatever
/// column it would begin at.
/// Shapes: x_p [batch, n_p], at most kMostConcatParts; w [sum of n_p, 1]; bias [1]; y [batch,
/// 1]. Dtypes: f32 f16 bf16, all alike.
HCTR_OP(void concat_linear(Context&, const std::vector<Tensor>& x, Tensor w, std::optional<Tensor> bias, Tensor y))

/// d_x_p[i, k] = d_y[i] w[n_0 + ... + n_{p-1} + k] for the parts that have a d_x. Overwrites them.
/// Shapes and dtypes: d_x_p like x_p; `widths` are all n_p.
HCTR_OP(void concat_linear_backward(Context&, Tensor w, Tensor d_y, const std::vector<int64_t>& widths,
                                    const std::vector<std::optional<Tensor>>& d_x))

}  // namespace hctr::ops
