// Loss scaling of a whole model: the scale, the search of all gradients for overflow, and the decision to skip a step.
#pragma once

#include "comm/communicator.h"
#include "device/arena.h"
#include "model/precision.h"
#include "ops/loss_scale.h"

namespace hctr {

class LossScaler {
 public:
  LossScaler(const Precision&, Runtime&);

  /// Around a step's work on the device. Between them every gradient is searched that is to be applied on this rank, or
  /// to travel to another one: a number that is none, or is none in the type it travels in, is an overflow.
  void begin(Context&, StepState*) const;
  /// What counts as an overflow in a gradient that travels in this type, and where to say so.
  ops::OverflowSearch search(DType travels_as = DType::f32) const;
  /// All ranks skip the step when one of them found an overflow.
  void end(Context&, Communicator&, StepState*) const;

  /// The scale and the count of skipped steps. Waits for the stream.
  ops::LossScale read(StreamRef) const;

 private:
  ops::LossScale* scale() const { return reinterpret_cast<ops::LossScale*>(scale_.data()); }

  ops::LossScaleRule rule_;
  Buffer scale_;
  Arena overflow_;  // [1]
};

}  // namespace hctr
