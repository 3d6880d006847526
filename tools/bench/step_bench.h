// A whole training step of a model, and what of it lies beside its computing.
#pragma once

#include <string>

#include "device/device.h"
#include "report.h"

namespace hctr::bench {

struct StepCase {
  std::string config;  ///< whose data are read once, for the batches that are then used over and over
  int64_t batch = 0;   ///< 0: as in the config
  int times = 50;
  int threads = 1;
};

/// Adds the time of a step whose batches lie in pinned memory already, of its two halves alone, and of what of the first (upload,
/// lookup, sort) the second does not hide. Errors: those of training.
void bench_step(Device, const StepCase&, Report&);

}  // namespace hctr::bench
