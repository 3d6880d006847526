// Element-wise products and differences.
#pragma once

#include <optional>
#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

inline constexpr size_t kMostFactors = 64;

/// y = x_0 * x_1 * ..., multiplied in this order in f32. Shapes: all equal; 1 to kMostFactors tensors. Dtypes: f32 f16
/// bf16.
HCTR_OP(void multiply(Context&, const std::vector<Tensor>& x, Tensor y))
/// dx_i = dy * the product of all x except x_i, for each i whose dx_i is given. Exact even if factors are 0, because
/// nothing is divided. Overwrites dx.
HCTR_OP(void multiply_backward(Context&, const std::vector<Tensor>& x, Tensor dy,
                               const std::vector<std::optional<Tensor>>& dx))

/// y = a - b. Shapes and dtypes equal. y may be a or b.
HCTR_OP(void subtract(Context&, Tensor a, Tensor b, Tensor y))
/// y = -x.
HCTR_OP(void negate(Context&, Tensor x, Tensor y))

/// Sets y to 0 where x is 0. Shapes and dtypes equal.
HCTR_OP(void zero_where_zero(Context&, Tensor x, Tensor y))

}  // namespace hctr::ops
