// One step of an optimizer on dense weights.
#pragma once

#include <vector>

#include "device/op.h"
#include "ops/optimizer_rules.h"

namespace hctr::ops {

/// Applies the rule to every weight; a no-op when the step is skipped. Shapes: w, g and every state alike and dense.
/// Dtypes: f32. Needs ctx.state().
HCTR_OP(void update_dense(Context&, const Optimizer&, Tensor g, Tensor w, const std::vector<Tensor>& states))

}  // namespace hctr::ops
