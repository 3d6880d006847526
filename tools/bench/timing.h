// Seconds that work takes on a device, in steady state.
#pragma once

#include <functional>
#include <vector>

#include "device/context.h"

namespace hctr::bench {

double median(std::vector<double> values);

/// The median seconds of body(i), i = 0, 1, ..., `times` of them, after `warm_up` untimed ones. Each is awaited;
/// before(i) runs and is awaited before each, untimed.
double seconds_each(Context&, int warm_up, int times, const std::function<void(int)>& body,
                    const std::function<void(int)>& before = {});

/// As seconds_each for work too short to be awaited alone: `in_a_row` calls are queued (on a GPU as one recorded
/// program) and awaited together; the seconds of one. before() runs and is awaited before each row, untimed.
double seconds_in_a_row(Context&, int in_a_row, int times, const std::function<void(int)>& body,
                        const std::function<void(int)>& before = {});

}  // namespace hctr::bench
