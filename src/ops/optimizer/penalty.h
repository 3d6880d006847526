// Sums for L1 and L2 regularizers.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

enum class Penalty { l1, l2 };

/// total[0] += factor * sum |w| (l1) or factor * sum w^2 (l2), in a fixed order. `scratch` gets the partial sums.
/// Shapes: w any dense tensor, scratch penalty_scratch(), total [1]. Dtypes: f32.
HCTR_OP(void add_penalty(Context&, Penalty, float factor, Tensor w, Tensor scratch, Tensor total))
inline constexpr int64_t kPenaltyParts = 256;
TensorSpec penalty_scratch();
/// dw += loss_scale * factor * sign(w) (l1), or loss_scale * 2 * factor * w (l2). sign(0) = -1, as in the original
/// HugeCTR. Shapes: w and dw equal and dense. Dtypes: f32. Needs ctx.state().
HCTR_OP(void add_penalty_gradient(Context&, Penalty, float factor, Tensor w, Tensor dw))

}  // namespace hctr::ops
