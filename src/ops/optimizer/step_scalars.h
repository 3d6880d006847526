// The scalars of a step on the device, for callers without a training loop. (A training loop uploads the scalars.)
#pragma once

#include "core/base/step_state.h"
#include "core/device/op.h"

namespace hctr::ops {

struct StepInput {
  float learning_rate = 0;
  const float* rate = nullptr;  // device memory; replaces learning_rate unless null
  float loss_scale = 1;
  const float* skip = nullptr;  // device memory; *skip != 0 skips the step; null: no skip
};

/// Sets learning rate, loss scale and skip flag of a state on the device. To be called before an update.
HCTR_OP(void set_step(Context&, StepState*, StepInput))
/// Increments the step count, and the update count unless the step was skipped.
HCTR_OP(void count_step(Context&, StepState*))

}  // namespace hctr::ops
