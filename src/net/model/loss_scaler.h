// Loss scaling: the scale, the overflow check of all gradients, and the decision to skip a step.
#pragma once

#include <vector>

#include "config/sections/precision.h"
#include "core/comm/communicator.h"
#include "core/device/arena.h"
#include "formats/checkpoint/state_reader.h"
#include "formats/checkpoint/state_writer.h"
#include "ops/common/loss_scale.h"

namespace hctr {

class LossScaler {
 public:
  LossScaler(const Precision&, Runtime&);

  /// begin() and end() enclose a step. Between them, check every gradient that this rank applies or sends to another
  /// rank. Inf and NaN are an overflow, also when they arise in the exchange dtype.
  void begin(Context&, StepState*) const;
  /// The overflow check of a gradient that is exchanged in this dtype.
  ops::OverflowSearch search(DType exchange = DType::f32) const;
  /// Checks all these tensors (wgrads or the operands that they are computed from), then ends the step. All ranks skip
  /// it if one of them has found an overflow.
  void end(Context&, const std::vector<Tensor>& gradients, Communicator&, StepState*) const;

  /// The state, on the device.
  const ops::LossScale* state() const { return scale(); }
  /// The scale and the number of skipped steps. Waits for the stream.
  ops::LossScale read(StreamRef) const;

  /// For checkpoints.
  void save_state(StateWriter to) const { to.array("scale", "u8", kStateShape, scale_.data()); }
  void load_state(const StateReader& from) { from.array("scale", "u8", kStateShape, scale_.data()); }

 private:
  static inline const std::vector<int64_t> kStateShape = {sizeof(ops::LossScale)};
  ops::LossScale* scale() const { return reinterpret_cast<ops::LossScale*>(scale_.data()); }

  ops::LossScaleRule rule_;
  Buffer scale_;
  Arena overflow_;  // the result of the checks, [1]; the number of blocks that have checked, [1]
};

}  // namespace hctr
