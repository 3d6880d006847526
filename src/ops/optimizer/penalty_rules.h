// The formulas of ops/optimizer/penalty.h, shared by every device.
#pragma once

#include "core/base/platform.h"
#include "core/base/step_state.h"
#include "ops/optimizer/penalty.h"

namespace hctr::ops {

HCTR_HD inline float penalty_of(Penalty kind, float w) { return kind == Penalty::l2 ? w * w : (w < 0 ? -w : w); }

/// dw + factor * loss_scale * the derivative of the penalty at w.
struct AddPenaltyGradient {
  Penalty kind;
  float factor;
  const StepState* state;
  float scaled = 0;

  HCTR_HD void prepare() { scaled = (kind == Penalty::l2 ? 2 * factor : factor) * state->loss_scale; }
  HCTR_HD float operator()(float w, float dw) const {
    const float slope = kind == Penalty::l2 ? w : (w > 0 ? 1.0f : -1.0f);
    return dw + scaled * slope;
  }
};

}  // namespace hctr::ops
