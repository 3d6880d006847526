// One step of an optimizer on dense weights.
#pragma once

#include <optional>
#include <vector>

#include "core/device/op.h"
#include "ops/optimizer/optimizer_rules.h"

namespace hctr::ops {

/// Applies the rule to every weight, and rounds the weights to `copy` if given. A no-op if the step is skipped. Shapes:
/// w, g, copy and every state equal and dense. Dtypes: f32; copy f16 or bf16. Needs ctx.state().
HCTR_OP(void update_dense(Context&, const Optimizer&, Tensor g, Tensor w, const std::vector<Tensor>& states,
                          std::optional<Tensor> copy))

}  // namespace hctr::ops
