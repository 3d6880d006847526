// Measures how long this process was suspended.
#pragma once

#include <chrono>
#include <utility>

namespace hctr {

/// Used by code that waits with a time limit. A process can be suspended by SIGSTOP, by Slurm, or together with its
/// machine. Peers may have answered during that time, so the waiting code extends its time limits by the suspended
/// time.
class StoppedTime {
 public:
  using Clock = std::chrono::steady_clock;

  /// Time for which the process was suspended since the last call or since construction. Call this about every second,
  /// because a gap of more than three seconds between two calls counts as a suspension.
  Clock::duration since_last() {
    const Clock::time_point now = Clock::now();
    const Clock::duration passed = now - std::exchange(last_, now);
    return passed > std::chrono::seconds(3) ? passed : Clock::duration::zero();
  }

 private:
  Clock::time_point last_ = Clock::now();
};

}  // namespace hctr
