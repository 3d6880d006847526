// Memory that the hash index takes for a key, just before it grows and just after.
#pragma once

#include "device/context.h"
#include "report.h"

namespace hctr::bench {

/// Of a table that grows by itself to more than 2^log_rows rows.
void bench_index_memory(Runtime&, int log_rows, Report&);

}  // namespace hctr::bench
