// Divides a stretch of time among the parts that run in it, some of which overlap.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

namespace hctr {

/// A part runs from `begin` to `end`, in seconds on a common axis. It may have several intervals.
struct PartInterval {
  size_t part = 0;
  int rank = 0;  ///< 0 comes first
  double begin = 0, end = 0;
};

struct TimeShares {
  std::vector<double> share;  ///< of each part, in seconds
  double idle = 0;            ///< seconds in which no part runs
  /// [part] seconds in which it and another part overlap, by that other part
  std::vector<std::map<size_t, double>> together;
};

/// Divides each instant of [begin, end) equally among the running parts of the lowest rank: a part hidden behind a
/// lower rank has no share. Shares and `idle` add up to the stretch exactly. Intervals are clipped to it.
TimeShares share_time(std::span<const PartInterval>, size_t parts, double begin, double end);

}  // namespace hctr
