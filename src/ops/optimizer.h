// One step of an optimizer on dense weights.
#pragma once

#include <vector>

#include "device/op.h"
#include "ops/optimizer_rules.h"

namespace hctr::ops {

/// The rule on every weight; nothing at all when the step is one to skip. Shapes: w, g and every state alike and dense.
/// Dtypes: f32. Needs ctx.state().
HCTR_OP(void update_dense(Context&, const Optimizer&, Tensor g, Tensor w, const std::vector<Tensor>& states))

}  // namespace hctr::ops
