// Time in which this process did not run.
#pragma once

#include <chrono>
#include <utility>

namespace hctr {

/// For waits with a limit: whoever is stopped (SIGSTOP, a job that Slurm suspends, a machine that is paused) does not
/// know afterwards who would have answered meanwhile. The others are given that time again.
class StoppedTime {
 public:
  using Clock = std::chrono::steady_clock;

  /// How long the process was stopped since the last call, or since construction. To be called about every second:
  /// more than three seconds between two calls are a stop.
  Clock::duration since_last() {
    const Clock::time_point now = Clock::now();
    const Clock::duration passed = now - std::exchange(last_, now);
    return passed > std::chrono::seconds(3) ? passed : Clock::duration::zero();
  }

 private:
  Clock::time_point last_ = Clock::now();
};

}  // namespace hctr
