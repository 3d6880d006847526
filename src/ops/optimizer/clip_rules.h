// The formula of ops/optimizer/clip.h, shared by every device.
#pragma once

#include <cmath>

#include "core/base/platform.h"
#include "core/base/step_state.h"

namespace hctr::ops {

struct ClipToNorm {
  float most;
  const float* squares;
  const StepState* state;
  float factor = 1;

  HCTR_HD void prepare() {
    const float norm = sqrtf(*squares) / state->loss_scale;
    factor = norm > most ? most / norm : 1.0f;
  }
  HCTR_HD float operator()(float g) const { return g * factor; }
};

}  // namespace hctr::ops
