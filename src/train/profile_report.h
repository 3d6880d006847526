// The report of a profile: where the time of a step goes, for people and for programs, and what limits it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/json.h"
#include "core/device/profiler.h"
#include "train/machine_ceilings.h"

namespace hctr {

/// A part of a step: the mean of all its spans, a step.
struct PartTime {
  Span::On on = Span::On::compute;
  std::string part, type, name;
  double seconds = 0;  ///< its own, from its begin to its end
  double share = 0;    ///< seconds of the step that are its own (time_shares.h)
  Work work{};
  struct Beside {
    size_t part;  ///< in StepTimes::parts
    double seconds;
  };
  std::vector<Beside> beside{};  ///< parts that run at the same time, the longest first
};

/// A step that was measured in parts, all figures a step.
struct StepTimes {
  std::string device;
  bool gpu = false;
  int threads = 1;
  int64_t samples = 0;            ///< of this rank
  int64_t steps = 0;              ///< whose parts were measured
  double seconds = 0;             ///< of the step: the shares of parts and `idle` are these. By events: `unmeasured`
  double unmeasured = 0;          ///< the seconds of steps without spans, just before; 0: none were measured
  bool recorded = false;          ///< parts were measured in recorded steps
  bool traced = false;            ///< parts were measured by KernelTrace: `seconds` are those of traced steps
  std::string not_traced{};       ///< why recorded steps were not traced
  bool trained_recorded = false;  ///< training runs recorded steps
  double measured = 0;            ///< StepTimeline::measured of recorded steps by events
  EventCost events{};             ///< in recorded steps
  double events_taken = 0;        ///< StepTimeline::events
  double idle = 0;                ///< in no part
  int cores = 1;                  ///< that this process may use
  double busy_cores = 0;          ///< processor time of the process, divided by the time in which it was measured
  std::vector<PartTime> parts;    ///< in the order of their first begin
  struct Stream {
    Span::On on;
    double seconds, hidden;  ///< its spans; of these while a span of the compute stream ran
  };
  std::vector<Stream> streams;  ///< others than the compute stream
  Ceilings ceilings;

  /// The shares of all parts.
  double in_parts() const;
};

/// Adds up spans of `steps` steps that took `seconds` in all, from 0: sets steps, seconds, idle, parts and streams.
///
/// On a GPU an instant of the step belongs to the part on the compute stream that runs then: it is what the step waits
/// for. Where that stream waits, to what runs on the streams of tables and weights; then to the preparation of the next
/// batch; where the GPU does nothing, to what the host does. So a part that is hidden has no share, and the step would
/// be shorter by about its share without it.
void add_up(const std::vector<Span>& spans, int64_t steps, double seconds, StepTimes&);

/// One sentence that names what takes most of the step and what limits it.
std::string bottleneck(const StepTimes&);
/// Lines for people. Parts below a thousandth of the step are one line.
std::vector<std::string> lines_of(const StepTimes&);
/// profile.json.
Json to_json(const StepTimes&);

}  // namespace hctr
