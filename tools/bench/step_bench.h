// A whole training step of a model, and what of it lies beside its computing; on one rank and on several.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"
#include "report.h"

namespace hctr::bench {

struct StepCase {
  std::string config;  ///< whose data are read once, for the batches that are then used over and over
  int64_t batch = 0;   ///< of all ranks together; 0: as in the config
  int times = 50;
  int warm_up = 3;  ///< steps on batches of the data before: tables then hold their rows, and frequent keys are found
  int threads = 1;  ///< of all ranks of this machine together
};

/// Adds the time of a step whose batches lie in pinned memory already, of its two halves alone, and of what of the
/// first (upload, lookup, sort) the second does not hide. Errors: those of training.
void bench_step(Device, const StepCase&, Report&);

struct ScaleCase {
  StepCase step;
  std::vector<int> ranks = {1, 2, 4};  ///< each in its turn, on as many GPUs or as that many ranks on the CPU
  bool strong = false;                 ///< the batch is that of all ranks together; else of each
};

/// For each number of ranks, all of this process: the time of a step, how much of the ideal speed that is (samples a
/// second, beside as many times those of the first number of ranks), and what the step's exchanges take by themselves:
/// the dense gradients' sum, vectors one way, keys. Errors: those of training; Error(device) when there are fewer GPUs.
void bench_scale(const std::vector<Device>&, const ScaleCase&, Report&);

}  // namespace hctr::bench
