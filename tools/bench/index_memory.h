// Measures the memory of the hash index per key, just before and just after the index grows.
#pragma once

#include "bench_report.h"
#include "core/device/context.h"

namespace hctr::bench {

/// Measures a table that grows to more than 2^log_rows rows.
void bench_index_memory(Runtime&, int log_rows, Report&);

}  // namespace hctr::bench
