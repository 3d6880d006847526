// The scalars of a step, kept on the device by callers without a training loop that uploads them.
#pragma once

#include "core/base/step_state.h"
#include "core/device/op.h"

namespace hctr::ops {

struct StepInput {
  float learning_rate = 0;
  const float* rate = nullptr;  // device memory; replaces learning_rate; null: not given
  float loss_scale = 1;
  const float* skip = nullptr;  // device memory; not 0: the step is skipped
};

/// Sets rate, scale and skip of a state on the device, before an update.
HCTR_OP(void set_step(Context&, StepState*, StepInput))
/// Counts the step, and the update unless it was skipped.
HCTR_OP(void count_step(Context&, StepState*))

}  // namespace hctr::ops
