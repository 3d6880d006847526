// Short waits of threads without sleeping. A sleeping thread takes tens of microseconds to wake up, and several times
// that in a virtual machine.
#pragma once

#include <chrono>
#include <thread>

#include "core/base/platform.h"

namespace hctr {

/// Calls over() until it returns true, for at most `most`. The caller holds no lock. The thread yields its core between
/// two calls, so that other threads can run if there are more threads than cores. Returns false if a yield took longer
/// than kSoon: other programs then compete for the core, and the caller should sleep. The scheduler runs all waiting
/// programs before a thread that yields, but not before a thread that wakes up.
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

/// Like yield_until(), but spins instead of yielding. Returns false once the system has descheduled this thread. In
/// that case there are more running threads than cores, and spinning would take CPU time from the awaited threads.
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
