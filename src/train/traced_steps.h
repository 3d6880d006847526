// Combines whole steps into one timeline, from the driver's records of each kernel, copy and fill.
//
// The rule: the time of a part is the time in which at least one of its kernels runs. A kernel may occupy
// multiprocessors before the previous one on its stream has ended (core/device/launch.cuh); its time begins at that
// end.
// Gaps between the first and the last kernel of a step are attributed to kernel starts.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/device/profiler.h"

namespace hctr {

/// The records of back-to-back steps.
struct TracedSeries {
  std::vector<TracedWork> work;  ///< in the order of begins
  std::vector<Span> queued;      ///< queued parts; host parts have times on the axis of `work`
  /// The parts of a recording.
  std::function<const std::vector<Span>&(size_t recording)> recorded;
};

/// Steps from 0 to `seconds`.
struct TracedSteps {
  std::vector<Span> spans;  ///< of parts; the work of a part is attached to its first span in a step
  int64_t steps = 0;
  double seconds = 0;
};

/// The part to which kernel starts are attributed.
constexpr std::string_view kStartOfKernels = "kernels";  // its type

/// Adds the whole steps of the series, each from its first kernel on the compute stream to that of the next step.
/// Excludes the first kIrregularFirst and the last kIrregularLast steps: they have an empty queue before them, or no
/// later batch that is prepared concurrently. Returns the number of added steps.
int64_t add_series(const TracedSeries&, TracedSteps&);
constexpr int64_t kIrregularFirst = 3, kIrregularLast = 2;

}  // namespace hctr
