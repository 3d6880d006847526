// Predicts the time of training steps on GPUs that this machine does not have, as a table.
#pragma once

#include <string>
#include <vector>

#include "bench_report.h"
#include "core/device/device.h"

namespace hctr::bench {

struct SimulateCase {
  std::string config, cluster;        ///< cluster: as cluster_from() takes it
  int64_t batch = 0;                  ///< samples of a GPU, or of all; 0: as in the config
  bool strong = false;                ///< the batch is of all GPUs together
  std::string gpu;                    ///< a known GPU; empty: the one that is there, else an H100
  std::vector<std::string> measured;  ///< steps of one GPU, as measured_step_from() takes them
};

/// Prints and reports a step for 1, 2, 4, ... GPUs of one host, then for 2, 4, ... hosts. Errors: Error(usage), those
/// of training.
void simulate_scale(Device, const SimulateCase&, Report&);

}  // namespace hctr::bench
