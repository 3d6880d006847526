// Divides a stretch of time among the parts that run in it, where some run beside each other.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

namespace hctr {

/// A part runs from `begin` to `end`, seconds on one axis. It may have several intervals.
struct PartInterval {
  size_t part = 0;
  int rank = 0;  ///< 0 comes first
  double begin = 0, end = 0;
};

struct TimeShares {
  std::vector<double> share;                       ///< of each part, in seconds
  double idle = 0;                                 ///< seconds in which no part runs
  std::vector<std::map<size_t, double>> together;  ///< [part] seconds in which it and another part run, by that part
};

/// Each instant of [begin, end) goes to the parts of the lowest rank that run in it, in equal pieces: what runs hidden
/// behind the work of a lower rank has no share. Shares and `idle` are the stretch exactly. Intervals are cut off at
/// its ends.
TimeShares share_time(std::span<const PartInterval>, size_t parts, double begin, double end);

}  // namespace hctr
