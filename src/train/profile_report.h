// The report of a profile: where the time of a step goes, as text and JSON, and what limits it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/json.h"
#include "core/device/profiler.h"
#include "train/machine_ceilings.h"

namespace hctr {

/// A part of a step: the mean of all its spans, per step.
struct PartTime {
  Span::On on = Span::On::compute;
  std::string part, type, name;
  double seconds = 0;  ///< from its begin to its end
  double share = 0;    ///< seconds of the step attributed to it (time_shares.h)
  Work work{};
  struct Beside {
    size_t part;  ///< index into StepTimes::parts
    double seconds;
  };
  std::vector<Beside> beside{};  ///< parts that overlap it, longest first
};

/// A step measured in parts. All figures are per step.
struct StepTimes {
  std::string device;
  bool gpu = false;
  int threads = 1;
  int64_t samples = 0;  ///< on this rank
  int64_t steps = 0;    ///< steps whose parts were measured
  /// duration of the step: the sum of all shares and `idle`. If measured by events: `unmeasured`
  double seconds = 0;
  double unmeasured = 0;          ///< seconds per step without spans, measured just before; 0: not measured
  bool recorded = false;          ///< whether parts were measured in recorded steps
  bool traced = false;            ///< whether KernelTrace measured the parts: `seconds` is of traced steps
  std::string not_traced{};       ///< the reason why recorded steps were not traced
  bool trained_recorded = false;  ///< whether training runs recorded steps
  double measured = 0;            ///< StepTimeline::measured, if recorded steps were measured by events
  EventCost events{};             ///< the cost of events in recorded steps
  double events_taken = 0;        ///< StepTimeline::events
  double idle = 0;                ///< time in no part
  int cores = 1;                  ///< cores that this process may use
  double busy_cores = 0;          ///< processor time of the process divided by elapsed time
  std::vector<PartTime> parts;    ///< in the order of their first begin
  struct Stream {
    Span::On on;
    double seconds, hidden;  ///< of its spans; the part that overlaps a span of the compute stream
  };
  std::vector<Stream> streams;  ///< all but the compute stream
  Ceilings ceilings;

  /// The sum of the shares of all parts.
  double in_parts() const;
};

/// Adds up the spans of `steps` steps that took `seconds` in total, starting at 0: sets steps, seconds, idle, parts and
/// streams.
///
/// On a GPU each instant is attributed to the part that runs on the compute stream, since the step waits for it. While
/// that stream waits, it is attributed to the streams of tables and weights; then to the preparation of the next batch;
/// while the GPU is idle, to the host's work. So a hidden part has no share, and removing a part would shorten the step
/// by about its share.
void add_up(const std::vector<Span>& spans, int64_t steps, double seconds, StepTimes&);

/// One sentence that names the part with the largest share of the step and what limits it.
std::string bottleneck(const StepTimes&);
/// The report as text. Parts below a thousandth of the step share one line.
std::vector<std::string> lines_of(const StepTimes&);
/// profile.json.
Json to_json(const StepTimes&);

}  // namespace hctr
