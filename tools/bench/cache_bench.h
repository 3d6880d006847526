// Measures look-ups in a store through a device's cache, and in the store's memory.
#pragma once

#include <string>

#include "bench_report.h"
#include "core/device/context.h"

namespace hctr::bench {

void bench_cache(Device, bool quick, const std::string& only, Report&);

}  // namespace hctr::bench
