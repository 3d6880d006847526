// The loss of a step for the host, and the sum of losses since the host last started it again.
#pragma once

#include "device/op.h"

namespace hctr::ops {

struct LossRecord {
  double sum = 0;       ///< of finite losses, each times the samples of its step over all ranks
  int64_t samples = 0;  ///< of those steps
  float loss = 0;       ///< of the last step
};

/// total.loss = loss[0]; where that is finite also total.sum += loss[0] * state.global_samples and
/// total.samples += state.global_samples; then *seen = total. One kernel takes the place of the copy of the loss to the
/// host, so a step costs the same.
/// Shapes: loss [1], f32. `total` is on the device; `seen` in host memory that the device can write (HostBuffer). Needs
/// ctx.state().
HCTR_OP(void record_loss(Context&, Tensor loss, LossRecord* total, LossRecord* seen))

}  // namespace hctr::ops
