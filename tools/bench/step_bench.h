// Measures training steps of a model, whole and in parts, on one or several ranks.
#pragma once

#include <string>
#include <vector>

#include "bench_report.h"
#include "core/device/device.h"

namespace hctr::bench {

struct StepCase {
  std::string config;  ///< path of a config, whose data are read once; the steps reuse the batches
  int64_t batch = 0;   ///< samples of all ranks; 0: the config's batchsize
  int times = 50;
  int warm_up = 3;  ///< warm-up steps, after which tables have their rows, and frequent keys are found
  int threads = 1;  ///< total threads for all ranks of this machine
};

/// Reports the time of a step whose batch is already in pinned memory. Also reports its two halves alone: preparing
/// (upload, lookup, sort), and computing. The last figure is the preparing time that computing does not hide. Errors:
/// those of training.
void bench_step(Device, const StepCase&, Report&);

struct ScaleCase {
  StepCase step;
  std::vector<int> ranks = {1, 2, 4};  ///< numbers of GPUs, or of ranks on the CPU, to measure
  bool strong = false;                 ///< strong scaling: `batch` is the batch of all ranks; otherwise of each rank
};

/// For each number of ranks, all in this process, reports the time of a step, the speed relative to linear scaling from
/// the first number of ranks, and the times of the step's exchanges alone: all-reduce of dense gradients, all-to-all of
/// vectors, and of keys. Errors: those of training; Error(device) if there are fewer GPUs than ranks.
void bench_scale(const std::vector<Device>&, const ScaleCase&, Report&);

}  // namespace hctr::bench
