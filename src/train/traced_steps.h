// Whole steps on one axis, from what the driver noted of each kernel, copy and fill.
//
// The rule: a part takes the time in which at least one of its kernels runs. A kernel that is on multiprocessors before
// the one in front of it on its stream has ended waits for that (core/device/launch.cuh), and its time begins there.
// Where nothing runs between the first and the last kernel of a step, kernels start.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/device/profiler.h"

namespace hctr {

/// What was seen of steps that follow each other without waiting.
struct TracedSeries {
  std::vector<TracedWork> work;  ///< in the order of begins
  std::vector<Span> queued;      ///< parts that were queued, those of the host with times on the axis of `work`
  /// The parts of a recording.
  std::function<const std::vector<Span>&(size_t recording)> recorded;
};

/// Steps from 0 to `seconds`.
struct TracedSteps {
  std::vector<Span> spans;  ///< of parts; what a part has to do is with its first span in a step
  int64_t steps = 0;
  double seconds = 0;
};

/// The part that has the time in which kernels start.
constexpr std::string_view kStartOfKernels = "kernels";  // its type

/// Adds the whole steps of the series, from the first kernel of one on the compute stream to that of a later one, all
/// but the first kIrregularFirst and the last kIrregularLast: those wait for nothing or for everything, or have no
/// later batch that is prepared beside them. Returns how many steps these are.
int64_t add_series(const TracedSeries&, TracedSteps&);
constexpr int64_t kIrregularFirst = 3, kIrregularLast = 2;

}  // namespace hctr
