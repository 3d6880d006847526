// Measures the time of work on a device in steady state.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "core/device/context.h"

namespace hctr::bench {

double median(std::vector<double> values);

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The CPU time of all threads of the process.
double cpu_seconds();

/// The median seconds of `times` calls body(0), body(1), ..., after `warm_up` untimed ones. Synchronizes after each
/// call. before(i) runs, untimed, before body(i).
double seconds_each(Context&, int warm_up, int times, const std::function<void(int)>& body,
                    const std::function<void(int)>& before = {});

/// Like seconds_each, for work that is too short to be timed alone. Enqueues `in_a_row` calls (on a GPU as one CUDA
/// graph), synchronizes once, and returns the seconds per call. Calls before(), untimed, before each sequence of calls.
double seconds_in_a_row(Context&, int in_a_row, int times, const std::function<void(int)>& body,
                        const std::function<void(int)>& before = {});

}  // namespace hctr::bench
