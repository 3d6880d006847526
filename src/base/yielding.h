// A short wait that does not put the thread to sleep.
#pragma once

#include <chrono>
#include <thread>

namespace hctr {

/// Returns once over() is true, or after `most`; until then other threads may have the core. A thread that sleeps takes
/// tens of microseconds to wake, and several times that in a virtual machine. over() is called without any lock.
template <class Over>
void yield_until(std::chrono::microseconds most, const Over& over) {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + most; !over() && Clock::now() < end;) std::this_thread::yield();
}

}  // namespace hctr
