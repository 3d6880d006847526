// The streams and events of a rank's steps, by the names that plans use.
#pragma once

#include <vector>

#include "core/device/context.h"
#include "core/device/recording.h"
#include "net/plan/step_plan.h"

namespace hctr {

class StepStreams {
 public:
  /// If `several_ranks`, exchanges get priority over other kernels.
  StepStreams(Runtime& runtime, bool several_ranks)
      : exchange_(runtime.exchange_stream()),
        elements_(runtime.device(), several_ranks ? StreamPriority::exchange : StreamPriority::lowest),
        weights_(runtime.device()),
        layers_(runtime.device()),
        signal_(runtime.device()) {}

  StreamRef of(StepStream stream, StreamRef compute) const {
    const StreamRef all[kStepStreams] = {compute, exchange_, elements_, weights_, layers_, signal_};
    return all[static_cast<size_t>(stream)];
  }
  /// Returns a context on `stream` for the same step as `caller`. `caller`: a context on the compute stream. On the CPU
  /// all work runs on the caller's stream.
  Context on(StepStream stream, const Context& caller) const {
    if (stream == StepStream::compute || !caller.device().is_cuda()) return caller;
    Context copy = caller;
    return Context(copy.runtime(), of(stream, caller.stream()), caller.state());
  }

 private:
  StreamRef exchange_;
  Stream elements_, weights_, layers_, signal_;
};

/// The events of a plan.
class StepEvents {
 public:
  StepEvents(const StepPlan& plan, Device device) {
    for (const bool crosses : plan.event_crosses) {
      events_.emplace_back(device);
      if (!crosses) events_.back().stay_inside();
    }
  }
  CrossingEvent& operator[](size_t event) { return events_.at(event); }

  /// Runs the call if it records an event or waits for an event; otherwise returns false. `own`: a context on the
  /// call's stream.
  bool run(const Context& own, const PlannedCall& call) {
    if (call.part == StepPart::record_event)
      events_.at(call.index).record(own.stream());
    else if (call.part == StepPart::wait_event)
      events_.at(call.index).make_wait(own.stream());
    else
      return false;
    return true;
  }

 private:
  std::vector<CrossingEvent> events_;
};

}  // namespace hctr
