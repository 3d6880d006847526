// Divides a period of time among parts that run in it and may overlap.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

namespace hctr {

/// A part runs from `begin` to `end`, in seconds on a common time axis. A part may have several intervals.
struct PartInterval {
  size_t part = 0;
  int rank = 0;  ///< priority: 0 is the highest
  double begin = 0, end = 0;
};

struct TimeShares {
  std::vector<double> share;  ///< [part] seconds
  double idle = 0;            ///< seconds in which no part runs
  /// [part][other part] seconds in which the two parts overlap
  std::vector<std::map<size_t, double>> together;
};

/// Divides each instant of [begin, end) equally among the running parts with the lowest value of `rank`. A part gets no
/// share while a part with a lower `rank` runs. The shares and `idle` add up to end - begin exactly. Intervals are
/// clipped to [begin, end).
TimeShares share_time(std::span<const PartInterval>, size_t parts, double begin, double end);

}  // namespace hctr
