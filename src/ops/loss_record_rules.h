// What a step's loss adds to its record: the same text on both devices.
#pragma once

#include "ops/loss_record.h"

namespace hctr::ops {

HCTR_HD inline void add_to_record(float loss, const StepState& state, LossRecord& total, StepState* stop,
                                  const LossScale* scale) {
  const bool finite = loss - loss == 0;  // neither infinite nor NaN
  total.loss = loss;
  total.step = state.step;
  if (finite) {
    total.sum += static_cast<double>(loss) * state.global_samples;
    total.samples += state.global_samples;
  }
  if (scale) {
    total.skipped_in_row = scale->skipped > total.skipped ? total.skipped_in_row + 1 : 0;
    total.skipped = scale->skipped;
  }
  if (finite && total.stopped == 0 && total.spoiled == 0 && state.spoiled && *state.spoiled != 0)
    total.spoiled = state.step;  // by the step before
  if (!stop) return;
  if (!finite && total.stopped == 0 && total.spoiled == 0) total.stopped = state.step + 1;
  if (total.stopped != 0 || total.spoiled != 0) stop->skip = 1;
}

}  // namespace hctr::ops
