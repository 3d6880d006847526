// Reports the loss of a step to the host, and the sum of losses since the host last reset that sum.
#pragma once

#include "core/device/op.h"
#include "ops/common/loss_scale.h"

namespace hctr::ops {

struct LossRecord {
  double sum = 0;       ///< sum of finite losses, each times the global samples of its step
  int64_t samples = 0;  ///< number of samples, over all ranks, of the steps in `sum`
  float loss = 0;       ///< loss of the last step
  int64_t step = 0;     ///< StepState::step of the last step
  int64_t stopped = 0;  ///< 1 + number of the step that stopped training because its loss was not finite; 0: none
  int64_t spoiled = 0;  ///< 1 + number of the first step whose update made the model not finite; 0: none
  int64_t skipped = 0;  ///< total number of skipped steps before the last step
  int64_t skipped_in_row = 0;  ///< number of consecutive skipped steps directly before the last step
};

/// Sets total.loss = loss[0]. If loss[0] is finite, also adds loss[0] * state.global_samples to total.sum, and
/// state.global_samples to total.samples. Then *seen = total. The kernel replaces the copy of the loss to the host, so
/// the step takes no longer. `stop`: null, or the writable ctx.state(). If the loss of a step is not finite, sets
/// stop->skip = 1 in that step and in all later steps; queued updates then keep the model of the preceding step.
/// `spoiled`: the flag that updates set (StepState::spoiled), on the device. If an earlier step has set the flag, sets
/// total.spoiled and stops steps in the same way. `scale`: null, or the loss scale whose skipped steps are counted.
/// Shapes: loss [1], f32. `total` is on the device; `seen` is in host memory that the device can write (HostBuffer).
/// Needs ctx.state().
HCTR_OP(void record_loss(Context&, Tensor loss, const int32_t* spoiled, LossRecord* total, LossRecord* seen,
                         StepState* stop, const LossScale* scale))

}  // namespace hctr::ops
