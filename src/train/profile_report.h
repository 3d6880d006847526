// The report of a profile, as text and JSON: the time of each part of a step, and what limits it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/json.h"
#include "core/device/profiler.h"
#include "train/machine_ceilings.h"

namespace hctr {

/// The mean time of a part of a step. All values are per step.
struct PartTime {
  Span::On on = Span::On::compute;
  std::string part, type, name;
  double seconds = 0;  ///< from the start of the part to its end
  double share = 0;    ///< seconds of the step attributed to the part (time_shares.h)
  Work work{};
  struct Beside {
    size_t part;  ///< index of the other part in StepTimes::parts
    double seconds;
  };
  std::vector<Beside> beside{};  ///< parts that overlap this part, longest overlap first
};

/// The parts of a step. All values are per step.
struct StepTimes {
  std::string device;
  bool gpu = false;
  int threads = 1;
  int64_t samples = 0;  ///< samples on this rank
  int64_t steps = 0;    ///< number of steps whose parts were measured
  /// duration of the step: the sum of all shares and `idle`. Equal to `unmeasured` if parts were measured by events
  double seconds = 0;
  /// seconds per step of steps whose parts were not measured, run just before; 0: unknown
  double unmeasured = 0;
  bool recorded = false;  ///< whether parts were measured in recorded steps
  /// whether KernelTrace measured the parts; `seconds` is then the duration of traced steps
  bool traced = false;
  std::string not_traced{};       ///< the reason why recorded steps were not traced
  bool trained_recorded = false;  ///< whether training runs recorded steps
  double measured = 0;            ///< StepTimeline::measured, if parts of recorded steps were measured by events
  EventCost events{};             ///< the cost of events in recorded steps
  double events_taken = 0;        ///< StepTimeline::events
  double idle = 0;                ///< time in which no part runs
  int cores = 1;                  ///< cores that this process may use
  double busy_cores = 0;          ///< processor time of the process divided by elapsed time
  std::vector<PartTime> parts;    ///< ordered by the start of the first span
  struct Stream {
    Span::On on;
    /// seconds: of the stream's spans; hidden: of these seconds, those that overlap the compute stream
    double seconds, hidden;
  };
  std::vector<Stream> streams;  ///< all streams except the compute stream
  Ceilings ceilings;

  /// The sum of the shares of all parts.
  double in_parts() const;
};

/// Adds up the spans of `steps` steps with a total duration of `seconds`. Time starts at 0. Sets steps, seconds, idle,
/// parts and streams.
///
/// On a GPU, each instant is attributed to one part. The compute stream has the first priority, because the step waits
/// for it. The streams of tables and weights follow, then the preparation of the next batch, then the host's work. A
/// part that always overlaps parts of higher priority has no share. Removing a part would shorten the step by about its
/// share.
void add_up(const std::vector<Span>& spans, int64_t steps, double seconds, StepTimes&);

/// One sentence that names the part with the largest share of the step, and what limits this part.
std::string bottleneck(const StepTimes&);
/// The report as text. Parts below a thousandth of the step are combined in one line.
std::vector<std::string> lines_of(const StepTimes&);
/// The content of profile.json.
Json to_json(const StepTimes&);

}  // namespace hctr
