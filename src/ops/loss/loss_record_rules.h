// Adds a step's loss to its record; shared by both devices.
#pragma once

#include "ops/loss/loss_record.h"

namespace hctr::ops {

/// Mostly branch-free, so that a thread waits once for all its loads.
HCTR_HD inline void add_to_record(float loss, const StepState& state, bool spoiled, LossRecord& total, StepState* stop,
                                  const LossScale* scale) {
  const bool finite = loss - loss == 0;  // false for infinities and NaN
  total.loss = loss;
  total.step = state.step;
  const int32_t samples = state.global_samples;
  total.sum += finite ? static_cast<double>(loss) * samples : 0;
  total.samples += finite ? samples : 0;
  if (scale) {
    total.skipped_in_row = scale->skipped > total.skipped ? total.skipped_in_row + 1 : 0;
    total.skipped = scale->skipped;
  }
  // The update of the preceding step, state.step - 1, set the flag. total.spoiled stores the number of that step plus
  // 1.
  if (spoiled && finite && total.stopped == 0 && total.spoiled == 0) total.spoiled = state.step;
  if (!stop) return;
  if (!finite && total.stopped == 0 && total.spoiled == 0) total.stopped = state.step + 1;
  if (total.stopped != 0 || total.spoiled != 0) stop->skip = 1;
}

}  // namespace hctr::ops
