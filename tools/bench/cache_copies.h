// Measures a cache on each of several GPUs at the same time.
#pragma once

#include <cstdint>

#include "bench_report.h"
#include "core/device/device.h"

namespace hctr::bench {

/// Compares one GPU with a tenth of the rows, each GPU of this machine with a tenth of the rows at the same time, and
/// one GPU with half of the rows. The requests of a GPU have keys of their own. On a CPU, two caches in host memory
/// stand for two GPUs. With one GPU, measures nothing. `rows`: rows of the table, of dim 128.
void time_copies(Device, bool quick, int64_t rows, Report&);

}  // namespace hctr::bench
