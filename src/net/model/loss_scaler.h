// Loss scaling: the scale factor, the overflow check of all gradients, and the decision to skip a step.
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

  /// begin() and end() enclose a step. Between the two calls, check every gradient that this rank applies or sends to
  /// another rank. Inf and NaN are treated as overflow, also if they arise in the conversion to the exchange dtype.
  void begin(Context&, StepState*) const;
  /// The overflow check for a gradient that is exchanged in dtype `exchange`.
  ops::OverflowSearch search(DType exchange = DType::f32) const;
  /// Checks `gradients` (wgrads, or the operands of wgrads), then ends the step. If any rank has found an overflow, all
  /// ranks skip the step.
  void end(Context&, const std::vector<Tensor>& gradients, Communicator&, StepState*) const;

  /// The state, on the device.
  const ops::LossScale* state() const { return scale(); }
  /// The scale and the number of skipped steps. Waits for the stream.
  ops::LossScale read(StreamRef) const;

  /// Checkpoints save and load the scale.
  void save_state(StateWriter to) const { to.array("scale", "u8", kStateShape, scale_.data()); }
  void load_state(const StateReader& from) { from.array("scale", "u8", kStateShape, scale_.data()); }

 private:
  static inline const std::vector<int64_t> kStateShape = {sizeof(ops::LossScale)};
  ops::LossScale* scale() const { return reinterpret_cast<ops::LossScale*>(scale_.data()); }

  ops::LossScaleRule rule_;
  Buffer scale_;
  Arena overflow_;  // two tensors [1]: the result of the checks, and the number of blocks that have finished checking
};

}  // namespace hctr
