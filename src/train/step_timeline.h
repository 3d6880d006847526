// One recorded step on one axis, from samples in which some of its parts were timed.
#pragma once

#include <vector>

#include "device/profiler.h"

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
  /// Until the last part ended that was recorded on another stream than that of the next batch. Longer than the step:
  /// `spans` have been scaled to it.
  double measured = 0;
};

/// Seconds that the events of a part add to a step, from a sample in which all parts were timed and the seconds of a
/// step without events.
double seconds_of_events(const StepSample& all, double step);

/// In how many samples every part should be timed once, so that its events do not matter.
int samples_for_all_parts(const StepSample& all, double step);

/// The median of the samples for each part. Parts that follow each other on a stream touch: the time in which a kernel
/// starts belongs to its part, and so does that of its events not. `step`: seconds of a step without events.
StepTimeline timeline_of(const std::vector<StepSample>&, double step, double seconds_of_events);

}  // namespace hctr
