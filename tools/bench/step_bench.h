// Training steps of a model, whole and in parts, on one rank and on several.
#pragma once

#include <string>
#include <vector>

#include "bench_report.h"
#include "core/device/device.h"

namespace hctr::bench {

struct StepCase {
  std::string config;  ///< its data is read once, and the batches are reused
  int64_t batch = 0;   ///< of all ranks; 0: as in the config
  int times = 50;
  int warm_up = 3;  ///< steps before measuring: tables then hold their rows, and frequent keys are found
  int threads = 1;  ///< of all ranks of this machine
};

/// Reports the time of a step whose batch is already in pinned memory, of its two halves alone (preparing: upload,
/// lookup, sort; computing), and the time of preparing that computing does not hide. Errors: those of training.
void bench_step(Device, const StepCase&, Report&);

struct ScaleCase {
  StepCase step;
  std::vector<int> ranks = {1, 2, 4};  ///< measured in turn, on this many GPUs, or as ranks on the CPU
  bool strong = false;                 ///< strong scaling: `batch` is the batch of all ranks; else of each rank
};

/// For each number of ranks, all in this process, reports the time of a step, the speed relative to linear scaling from
/// the first number of ranks, and the times of the step's exchanges alone: all-reduce of dense gradients, all-to-all of
/// vectors and of keys. Errors: those of training; Error(device) if there are fewer GPUs.
void bench_scale(const std::vector<Device>&, const ScaleCase&, Report&);

}  // namespace hctr::bench
