// Measures look-ups in a store through a device's cache, and in the store's memory.
#pragma once

#include <cstdint>
#include <string>

#include "bench_report.h"
#include "core/device/context.h"

namespace hctr::bench {

/// On several GPUs, also measures a cache on each at the same time. `only`: parts of the names of the cases to run,
/// separated by '|'. `rows`: rows of the tables of dim 128.
void bench_cache(Device, bool quick, const std::string& only, int64_t rows, Report&);

}  // namespace hctr::bench
