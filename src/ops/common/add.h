// Element-wise sums of tensors.
#pragma once

#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

inline constexpr size_t kMostAddends = 128;

/// y = x_0 + x_1 + ..., added in this order in f32. y may alias one of the x. Shapes: all equal; 1 to kMostAddends
/// tensors. Dtypes: f32 f16 bf16. Errors: Error(bug) if shapes, dtypes or devices disagree.
HCTR_OP(void add(Context&, const std::vector<Tensor>& x, Tensor y))

/// y += factor * x. Shapes and dtypes as in add().
HCTR_OP(void add_scaled(Context&, Tensor x, float factor, Tensor y))

}  // namespace hctr::ops
