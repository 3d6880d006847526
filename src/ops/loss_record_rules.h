// What a step's loss adds to its record: the same text on both devices.
#pragma once

#include "ops/loss_record.h"

namespace hctr::ops {

HCTR_HD inline void add_to_record(float loss, int32_t samples, LossRecord& total) {
  total.loss = loss;
  if (!(loss - loss == 0)) return;  // infinite or NaN
  total.sum += static_cast<double>(loss) * samples;
  total.samples += samples;
}

}  // namespace hctr::ops
