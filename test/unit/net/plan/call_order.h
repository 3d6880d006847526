// The order of a plan's calls that its streams and events enforce, as on a GPU.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <vector>

#include "net/plan/step_plan.h"

namespace hctr::test {

class CallOrder {
 public:
  explicit CallOrder(const StepPlan& plan) : calls_(plan.calls), events_(plan.event_crosses.size()) {
    for (size_t c = 0; c < calls_.size(); ++c) add(c);
  }
  /// Whether call `then` runs only after call `first` has finished.
  bool before(size_t first, size_t then) const { return behind_[then].contains(first); }
  /// The indices of all calls of a part, or only of the calls for one layer, table or group.
  std::vector<size_t> calls(StepPart part, std::optional<size_t> index = {}) const {
    std::vector<size_t> found;
    for (size_t c = 0; c < calls_.size(); ++c)
      if (calls_[c].part == part && (!index || calls_[c].index == *index)) found.push_back(c);
    return found;
  }
  /// Whether each call in `then` runs only after all calls in `first`.
  bool all_before(const std::vector<size_t>& first, const std::vector<size_t>& then) const {
    for (const size_t f : first)
      for (const size_t t : then)
        if (!before(f, t)) return false;
    return true;
  }

 private:
  void add(size_t c) {
    const PlannedCall& call = calls_[c];
    std::set<size_t>& stream = on_[static_cast<size_t>(call.stream)];
    if (call.part == StepPart::record_event) {
      events_[call.index] = stream;
    } else if (call.part == StepPart::wait_event) {
      stream.insert(events_[call.index].begin(), events_[call.index].end());
    }
    behind_.push_back(stream);
    if (call.part == StepPart::wait_all_reduces) stream.insert(all_reduces_.begin(), all_reduces_.end());
    if (call.part == StepPart::sum_replicated || call.part == StepPart::all_reduce_weights) {
      all_reduces_.insert(stream.begin(), stream.end());  // all-reduces run sequentially on their own stream
      all_reduces_.insert(c);
      if (call.part == StepPart::sum_replicated) events_[call.end] = all_reduces_;
    } else if (call.part != StepPart::record_event && call.part != StepPart::wait_event) {
      stream.insert(c);
    }
  }

  const std::vector<PlannedCall>& calls_;
  std::array<std::set<size_t>, kStepStreams> on_;  // for each stream, the calls that the next call waits for
  std::set<size_t> all_reduces_;
  std::vector<std::set<size_t>> events_, behind_;
};

}  // namespace hctr::test
