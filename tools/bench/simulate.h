// Predicts the time of training steps on GPUs that this machine does not have, as a table.
#pragma once

#include <string>
#include <vector>

#include "bench_report.h"
#include "core/device/device.h"

namespace hctr::bench {

struct SimulateCase {
  std::string config, cluster;        ///< cluster: as accepted by cluster_from()
  int64_t batch = 0;                  ///< samples per GPU; if `strong`, samples of all GPUs; 0: the config's batchsize
  bool strong = false;                ///< `batch` is the batch of all GPUs together
  std::string gpu;                    ///< a known GPU model; empty: this machine's GPU, or an H100
  std::vector<std::string> measured;  ///< measured steps of one GPU, as accepted by measured_step_from()
};

/// Prints and reports the predicted step time for 1, 2, 4, ... GPUs of one host, then for 2, 4, ... hosts. Errors:
/// Error(usage), those of training.
void simulate_scale(Device, const SimulateCase&, Report&);

}  // namespace hctr::bench
