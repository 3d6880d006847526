// Combines samples into one timeline. Each sample is a measured step in which a few parts of a recorded step are timed.
//
// In one step, the duration of a part is the time between its two events, minus the cost of two events. The result is
// the median of several steps. Times of different steps are never subtracted. Parts of the compute stream run in order.
// The gap between two such parts is measured in a step in which both were timed.
#pragma once

#include <vector>

#include "core/device/profiler.h"

namespace hctr {

/// A measured step in a series of back-to-back steps. Times are in seconds since the start of the step's first part on
/// the compute stream.
struct StepSample {
  /// the parts of the recorded step, in the same order in each sample; only some are timed
  std::vector<Span> recorded;
  std::vector<Span> queued;  ///< parts that are not recorded, but queued in each step
  double period = 0;         ///< seconds from the start of the step to the start of the next step
};

/// One step of a repeating sequence.
struct StepTimeline {
  /// times are in [0, seconds of a step); a span that extends into the next step continues at the start
  std::vector<Span> spans;
  /// The sum of the parts and gaps on the compute stream, minus EventCost::around for each part.
  double measured = 0;
  double events = 0;  ///< seconds subtracted from each part, so that parts and gaps add up to the step
};

/// Chooses the parts that each sample (a measured step) times, as indices into `parts`. Several rounds of samples are
/// measured. In each round, any two adjacent parts of the compute stream are timed in the same sample once. `samples`:
/// the approximate number of samples of all rounds. With more samples, each sample needs fewer events.
std::vector<std::vector<size_t>> parts_to_time(const std::vector<Span>& parts, size_t samples);

/// The first sample times all parts; its values are used only for parts that no other sample has timed. `step`: seconds
/// of a step without events. If parts and gaps add up to less, the difference is added to gaps with a wait, as far as
/// events can have hidden a longer wait. Then the cost of an event is adjusted within a microsecond, so that the sum
/// equals the step. A remaining deficit becomes idle time at the end of the step. A remaining surplus is scaled down.
StepTimeline timeline_of(const std::vector<StepSample>&, double step, EventCost);

}  // namespace hctr
