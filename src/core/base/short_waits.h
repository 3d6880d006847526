// Short waits of threads that do not put them to sleep, since a thread that sleeps takes tens of microseconds to wake,
// and several times that in a virtual machine.
#pragma once

#include <chrono>
#include <thread>

#include "core/base/platform.h"

namespace hctr {

/// Returns once over() is true, or after `most`; over() is called without any lock. Other threads may have the core
/// meanwhile: for threads of which there are more than cores. Returns whether the core was soon given back. Where other
/// programs run, too, it is not: a thread that yields waits behind all of them, one that wakes does not.
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

/// The same, but keeps the core. Returns false once it has been taken away meanwhile: there are more threads that run,
/// of this or of other programs, than cores, and a thread that waits in this way takes the time of those it waits for.
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
