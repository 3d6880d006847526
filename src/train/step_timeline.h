// One recorded step on one axis, from samples in each of which a few of its parts were timed.
//
// The rule: a part takes what passes between its own two events in one step, less what two events add, the median of
// several steps; times of different steps are never subtracted. Parts of the compute stream follow each other in their
// order, and between two of them lies the gap that was seen in a step in which both were timed.
#pragma once

#include <vector>

#include "core/device/profiler.h"

namespace hctr {

/// Steps in a row, of which one has been looked at. Times in seconds since its first part on the compute stream began.
struct StepSample {
  std::vector<Span> recorded;  ///< the parts of the recorded step, in the same order in each sample; some are not timed
  std::vector<Span> queued;    ///< other parts, queued in each step
  double period = 0;           ///< from the begin of the step to that of the next one
};

/// A step of steps that repeat.
struct StepTimeline {
  std::vector<Span> spans;  ///< in [0, seconds of a step); what goes on in the next step is at its begin
  /// Parts of the compute stream and gaps, each as it was measured, with EventCost::around taken off a part.
  double measured = 0;
  double events = 0;  ///< taken off each part, so that parts and gaps are the step
};

/// Which parts are timed in which sample, by their place in `parts`: neighbours of the compute stream together, and
/// each neighbours once in a round. The more samples there may be, the fewer parts have events in one; all rounds are
/// about `samples`.
std::vector<std::vector<size_t>> parts_to_time(const std::vector<Span>& parts, size_t samples);

/// The first sample has times of all parts, and counts only for those that no other has. `step`: seconds of a step
/// without events. What the sum of parts and gaps lacks of it is in the waits that were seen, as far as events before
/// them can have hidden it. The events of a part are then taken to cost what makes the sum the step, within a
/// microsecond of what was measured; what is still missing is idle time at the end of the step, and what is too much is
/// scaled.
StepTimeline timeline_of(const std::vector<StepSample>&, double step, EventCost);

}  // namespace hctr
