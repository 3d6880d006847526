// Time in which this process did not run.
#pragma once

#include <chrono>
#include <utility>

namespace hctr {

/// For waits with a time limit. A process that was stopped (SIGSTOP, a job that Slurm suspends, a paused machine)
/// cannot know which peers would have answered meanwhile, so it restarts their time limits.
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
