// Combines samples, each of which times a few parts of a recorded step, into one timeline.
//
// The rule: the duration of a part is the time between its own two events in one step, minus the cost of two events, as
// the median of several steps. Times of different steps are never subtracted. Parts of the compute stream follow each
// other in order; the gap between two of them is taken from a step in which both were timed.
#pragma once

#include <vector>

#include "core/device/profiler.h"

namespace hctr {

/// Consecutive steps, one of which was measured. Times in seconds since its first part on the compute stream began.
struct StepSample {
  std::vector<Span> recorded;  ///< the parts of the recorded step, in the same order in each sample; some are untimed
  std::vector<Span> queued;    ///< other parts, queued in each step
  double period = 0;           ///< from the begin of the step to that of the next one
};

/// One step of a repeating sequence.
struct StepTimeline {
  /// in [0, seconds of a step); a span that extends into the next step continues at the start
  std::vector<Span> spans;
  /// The sum of the measured parts and gaps of the compute stream, minus EventCost::around for each part.
  double measured = 0;
  double events = 0;  ///< subtracted from each part, so that parts and gaps add up to the step
};

/// For each sample the parts to time, as indices into `parts`. Neighbours on the compute stream are timed together, and
/// each pair once per round. The more samples, the fewer parts of a sample have events; all rounds take about `samples`
/// samples.
std::vector<std::vector<size_t>> parts_to_time(const std::vector<Span>& parts, size_t samples);

/// The first sample has times of all parts, and counts only for parts that no other sample has. `step`: seconds of a
/// step without events. If parts and gaps sum to less, the difference is added to the waits that were seen, as far as
/// events before them can have hidden it. Then the cost of an event is chosen so that the sum is the step, within a
/// microsecond of the measured cost. A remaining deficit is idle time at the end of the step; a surplus is scaled down.
StepTimeline timeline_of(const std::vector<StepSample>&, double step, EventCost);

}  // namespace hctr
