// The loss of a step for the host, and the sum of losses since the host last reset it.
#pragma once

#include "core/device/op.h"
#include "ops/common/loss_scale.h"

namespace hctr::ops {

struct LossRecord {
  double sum = 0;              ///< sum of finite losses, each times the samples of its step over all ranks
  int64_t samples = 0;         ///< samples of those steps
  float loss = 0;              ///< loss of the last step
  int64_t step = 0;            ///< StepState::step of the last step
  int64_t stopped = 0;         ///< 1 + the step of the first loss that was not finite, if steps stop there; 0: none
  int64_t spoiled = 0;         ///< 1 + the step whose update has spoiled the model while losses were finite; 0: none
  int64_t skipped = 0;         ///< steps before the last that were skipped, and
  int64_t skipped_in_row = 0;  ///< consecutive steps with such a loss, up to the step before the last
};

/// total.loss = loss[0]; where that is finite also total.sum += loss[0] * state.global_samples and
/// total.samples += state.global_samples; then *seen = total. One kernel takes the place of the copy of the loss to the
/// host, so a step costs the same.
/// `stop`: null, or the step's own state, to be written: stop->skip = 1 in the first step whose loss is not finite, and
/// in all after it, so that updates queued after it leave the model as it was before that step.
/// `spoiled`: the flag that updates set (StepState::spoiled), on the device. Where one before this step has set it,
/// total.spoiled is noted, and stops steps likewise.
/// `scale`: null, or the state of a loss scale, whose skipped steps are counted.
/// Shapes: loss [1], f32. `total` is on the device; `seen` in host memory that the device can write (HostBuffer). Needs
/// ctx.state().
HCTR_OP(void record_loss(Context&, Tensor loss, const int32_t* spoiled, LossRecord* total, LossRecord* seen,
                         StepState* stop, const LossScale* scale))

}  // namespace hctr::ops
