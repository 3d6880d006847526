// Loss scaling: the loss is multiplied by a scale so that small gradients are representable in f16. A step whose
// gradients overflow is skipped. Source: P. Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2.
#pragma once

#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

/// The state of the loss scale, on the device. The host therefore need not synchronize to learn whether a step was
/// skipped.
struct LossScale {
  float scale = 1;
  int32_t good_steps = 0;  ///< steps applied since the scale last changed
  int64_t skipped = 0;     ///< steps skipped so far
};

/// Arguments of an overflow check: the largest valid magnitude, and the flag to set, on the device of the gradients. A
/// null flag disables the check.
struct OverflowSearch {
  float largest = 0;
  float* found = nullptr;
};

struct LossScaleRule {
  bool dynamic = false;     ///< false: the scale is constant, and overflowing steps are still skipped
  int32_t patience = 2000;  ///< steps without overflow before the scale doubles
  float least = 1, most = 16777216;

  /// Ends a step. An overflow skips the step and halves the scale; `patience` steps without overflow double the scale.
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

/// Call before the forward pass. Sets state.loss_scale = scale, state.updates = state.updates_before + state.step -
/// skipped, state.skip = 0 and overflow[0] = 0. Shapes: overflow [1], f32. `state` is the writable ctx.state().
HCTR_OP(void begin_scaled_step(Context&, const LossScale*, StepState* state, Tensor overflow))
/// Sets *found = 1 if g contains an infinity, a NaN or a value outside +-largest; otherwise leaves *found unchanged. A
/// no-op if `found` is null. Any row stride. Dtypes: g f32 f16 bf16.
HCTR_OP(void find_overflow(Context&, Tensor g, OverflowSearch))
/// Call after the backward pass. Calls LossScaleRule::finish(); the step has an overflow if overflow[0] > 0.
HCTR_OP(void end_scaled_step(Context&, LossScaleRule, Tensor overflow, LossScale*, StepState* state))
/// Runs find_overflow() on all tensors, then end_scaled_step(), in one kernel. search.found must point to `overflow`.
/// `blocks_done` [1], i32, is 0 before and after the call.
HCTR_OP(void end_scaled_step_after_search(Context&, const std::vector<Tensor>& all, OverflowSearch search,
                                          LossScaleRule, Tensor overflow, Tensor blocks_done, LossScale*,
                                          StepState* state))

}  // namespace hctr::ops
