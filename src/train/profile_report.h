// The report of a profile: where the time of a step goes, for people and for programs, and what limits it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "config/json.h"
#include "device/profiler.h"
#include "train/ceilings.h"

namespace hctr {

/// A part of a step: the mean of all its spans, a step.
struct PartTime {
  Span::On on = Span::On::compute;
  std::string part, type, name;
  double seconds = 0;
  Work work{};
};

/// A step that was measured in parts, all figures a step.
struct StepTimes {
  std::string device;
  bool gpu = false;
  int threads = 1;
  int64_t samples = 0;          ///< of this rank
  int64_t steps = 0;            ///< that were measured
  double seconds = 0;           ///< from step to step
  double unmeasured = 0;        ///< the seconds of steps without spans, just before; 0: none were measured
  bool recorded = false;        ///< those ran from recorded programs, the measured ones did not
  int cores = 1;                ///< that this process may use
  double busy_cores = 0;        ///< processor time of the process, divided by `seconds`
  std::vector<PartTime> parts;  ///< in the order of their first begin
  struct Beside {
    Span::On on;
    double seconds, hidden;  ///< its spans; of these while a span of the compute stream ran
  };
  std::vector<Beside> beside;  ///< other streams
  Ceilings ceilings;

  /// Whether the part takes time of the step itself: on a GPU only what runs on the compute stream, on a CPU all.
  bool in_step(const PartTime& part) const { return !gpu || part.on == Span::On::compute; }
  /// Seconds of a step as training runs it: parts are held against these. Recorded steps have no gaps between kernels
  /// that the host cannot start in time.
  double as_trained() const { return recorded && unmeasured > 0 ? unmeasured : seconds; }
  /// Seconds of all parts in the step, and those that belong to none. Measured apart, parts can be a little longer than
  /// a recorded step.
  double in_parts() const;
  double rest() const { return std::max(0.0, as_trained() - in_parts()); }
};

/// Adds up spans of `steps` steps that took `seconds` in all: sets steps, seconds, parts and beside.
void add_up(const std::vector<Span>& spans, int64_t steps, double seconds, StepTimes&);

/// One sentence that names what takes most of the step and what limits it.
std::string bottleneck(const StepTimes&);
/// Lines for people. Parts below a thousandth of the step are one line.
std::vector<std::string> lines_of(const StepTimes&);
/// profile.json.
Json to_json(const StepTimes&);

}  // namespace hctr
