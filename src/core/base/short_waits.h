// Short waits of threads without sleeping: a sleeping thread takes tens of microseconds to wake, and several times that
// in a virtual machine.
#pragma once

#include <chrono>
#include <thread>

#include "core/base/platform.h"

namespace hctr {

/// Returns once over() is true, or after `most`; over() is called without any lock. Yields the core to other threads
/// meanwhile, for more threads than cores. Returns whether the core came back soon. It does not if other programs run
/// too: a yielding thread waits for all of them, a waking thread does not.
template <class Over>
bool yield_until(std::chrono::microseconds most, const Over& over) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kSoon(500);
  Clock::time_point now = Clock::now();
  for (const auto end = now + most; !over() && now < end;) {
    const Clock::time_point before = now;
    std::this_thread::yield();
    now = Clock::now();
    if (now - before > kSoon) return false;
  }
  return true;
}

/// The same without yielding. Returns false once the core was taken away: then more threads run, of this or of other
/// programs, than there are cores, and this wait takes time from the threads it waits for.
template <class Over>
bool spin_until(std::chrono::microseconds most, const Over& over) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kTaken(500);
  constexpr int kBetweenLooks = 32;
  Clock::time_point now = Clock::now();
  for (const auto end = now + most; !over() && now < end;) {
    for (int i = 0; i < kBetweenLooks && !over(); ++i) HCTR_PAUSE();
    const Clock::time_point before = now;
    now = Clock::now();
    if (now - before > kTaken) return false;
  }
  return true;
}

}  // namespace hctr
