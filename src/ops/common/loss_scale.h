// Loss scaling: the loss is multiplied so that small gradients are representable in f16; a step whose gradients
// overflow is skipped. Source: P. Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2.
#pragma once

#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

/// The state of the scale, on the device, so that the host does not wait to learn whether a step was skipped.
struct LossScale {
  float scale = 1;
  int32_t good_steps = 0;  ///< steps applied since the scale last changed
  int64_t skipped = 0;     ///< steps skipped so far
};

/// The largest magnitude that is not an overflow, and the flag to set, on the device of the gradients; null: no search.
struct OverflowSearch {
  float largest = 0;
  float* found = nullptr;
};

struct LossScaleRule {
  bool dynamic = false;     ///< false: the scale is constant; overflowing steps are skipped too
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

/// Before the forward pass: state.loss_scale = scale, state.updates = state.updates_before + state.step - skipped,
/// state.skip = 0, overflow[0] = 0. Shapes: overflow [1], f32. `state` is the step's own, ctx.state(), to be written.
HCTR_OP(void begin_scaled_step(Context&, const LossScale*, StepState* state, Tensor overflow))
/// *found = 1 if g holds an infinity, NaN or a number beyond +-largest; else unchanged. A no-op if `found` is null. Any
/// row stride. Dtypes: g f32 f16 bf16.
HCTR_OP(void find_overflow(Context&, Tensor g, OverflowSearch))
/// After the backward pass: the rule's finish() with overflow[0] > 0.
HCTR_OP(void end_scaled_step(Context&, LossScaleRule, Tensor overflow, LossScale*, StepState* state))
/// find_overflow() of all tensors, then end_scaled_step(), as one kernel. `overflow` is where search.found points;
/// `blocks_done` [1], i32, is 0 before and after.
HCTR_OP(void end_scaled_step_after_search(Context&, const std::vector<Tensor>& all, OverflowSearch search,
                                          LossScaleRule, Tensor overflow, Tensor blocks_done, LossScale*,
                                          StepState* state))

}  // namespace hctr::ops
