// Loss scaling: small gradients are multiplied into the range of f16, and a step whose gradients leave it is not
// applied. Source: P. Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2.
#pragma once

#include "device/op.h"

namespace hctr::ops {

/// What is carried from step to step, on the device, so that the host need not wait to see a step skipped.
struct LossScale {
  float scale = 1;
  int32_t good_steps = 0;  ///< applied since the scale last changed
  int64_t skipped = 0;     ///< steps not applied, in all
};

/// What is an overflow, and where it is told: on the device of the gradients; null: nobody asks.
struct OverflowSearch {
  float largest = 0;
  float* found = nullptr;
};

struct LossScaleRule {
  bool dynamic = false;     ///< false: the scale stays, and overflowing steps are skipped all the same
  int32_t patience = 2000;  ///< good steps before the scale doubles
  float least = 1, most = 16777216;

  /// An overflow halves the scale, `patience` steps without one double it.
  HCTR_HD void finish(bool overflow, LossScale& s, StepState& state) const {
    state.skip = overflow ? 1 : 0;
    s.skipped += overflow ? 1 : 0;
    s.good_steps = overflow ? 0 : s.good_steps + 1;
    if (!dynamic || (!overflow && s.good_steps < patience)) return;
    s.good_steps = 0;
    const float wanted = overflow ? s.scale * 0.5f : s.scale * 2.0f;
    s.scale = wanted < least ? least : wanted > most ? most : wanted;
  }
};

/// Before the forward pass: state.loss_scale = scale, state.updates = state.step - skipped, state.skip = 0, overflow[0]
/// = 0. Shapes: overflow [1], f32. `state` is the step's own, ctx.state(), to be written.
HCTR_OP(void begin_scaled_step(Context&, const LossScale*, StepState* state, Tensor overflow))
/// *found = 1 if g holds an infinity, NaN or a number beyond +-largest; else unchanged. Nothing where nobody asks. Any
/// row stride. Dtypes: g f32 f16 bf16.
HCTR_OP(void find_overflow(Context&, Tensor g, OverflowSearch))
/// After the backward pass: the rule's finish() with overflow[0] > 0.
HCTR_OP(void end_scaled_step(Context&, LossScaleRule, Tensor overflow, LossScale*, StepState* state))

}  // namespace hctr::ops
