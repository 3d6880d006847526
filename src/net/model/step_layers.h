// The layer calls of a planned step, and the wgrads deferred to the end of the backward pass.
#pragma once

#include <span>
#include <vector>

#include "core/device/lockstep.h"
#include "net/model/network.h"
#include "net/plan/step_plan.h"

namespace hctr {

/// Runs the layer calls of one step. The constructor's arguments must outlive this object.
class StepLayers {
 public:
  /// `caller`: a context on the compute stream.
  StepLayers(const Network& network, const Network::Binding& binding, const Context& caller)
      : network_(network), binding_(binding), caller_(caller), last_(caller) {}

  /// Queues the call if it is a call of layers; otherwise returns false. `own`: a context on the call's stream.
  bool run(const Context& own, const PlannedCall&);
  /// The wgrads that StepPart::grouped_products has started.
  std::span<const Lockstep::LateResult> grouped() const { return grouped_; }

 private:
  void weight_gradients(Context&, const PlannedCall&);
  void start_all();
  void start_sums(Context&);
  void start_products();

  const Network& network_;
  const Network::Binding& binding_;
  Context caller_;
  Lockstep last_;
  std::vector<Lockstep::LateResult> grouped_;
  double bytes_at_the_end_ = 0;  // bytes of deferred calls, for profiling
};

}  // namespace hctr
