// Combines whole steps into one timeline, from the driver's records of each kernel, copy and fill.
//
// The time of a part is the time in which at least one of its kernels runs. A kernel may occupy multiprocessors before
// the preceding kernel on its stream has ended (core/device/launch.cuh). The time of the later kernel then counts from
// the end of the preceding kernel. Gaps between the first and the last kernel of a step are attributed to kernel
// starts.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/device/profiler.h"

namespace hctr {

/// The driver's records of back-to-back steps.
struct TracedSeries {
  std::vector<TracedWork> work;  ///< sorted by start
  std::vector<Span> queued;      ///< queued parts; host parts use the time axis of `work`
  /// The parts of a recording.
  std::function<const std::vector<Span>&(size_t recording)> recorded;
};

/// Steps on a time axis from 0 to `seconds`.
struct TracedSteps {
  /// spans of parts; if a part has several spans in a step, the first span has the part's whole work
  std::vector<Span> spans;
  int64_t steps = 0;
  double seconds = 0;
};

/// The part to which kernel starts are attributed.
constexpr std::string_view kStartOfKernels = "kernels";  // type of the part

/// Adds the complete steps of the series. A step lasts from its first kernel on the compute stream to the next step's
/// first kernel. Excludes the first kIrregularFirst steps, which begin with an empty queue, and the last kIrregularLast
/// steps, which have no later batch to prepare concurrently. Returns the number of added steps.
int64_t add_series(const TracedSeries&, TracedSteps&);
constexpr int64_t kIrregularFirst = 3, kIrregularLast = 2;

}  // namespace hctr
