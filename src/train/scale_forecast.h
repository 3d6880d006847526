// How long a training step should take on many GPUs of several hosts, from the step of one GPU and the speed of links.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "train/machine_ceilings.h"

namespace hctr {

/// Equal hosts and what joins them. Rates are one way.
struct Cluster {
  struct Links {
    double bytes = 0;    ///< a second
    double seconds = 0;  ///< until an exchange over them begins
  };
  int64_t hosts = 1, gpus = 8;  ///< gpus: of a host
  Links inside{320e9, 15e-6};   ///< bytes: of a GPU
  Links between{};              ///< bytes: of all adapters of a host
  std::string network;          ///< as it was written

  int64_t all_gpus() const { return hosts * gpus; }
};

/// "hosts=16,gpus=8,network=8xib400,links=nvlink": adapters by their Gb/s, nine tenths of which are counted, or GB/s of
/// a host and microseconds as in network=45:20; links "nvlink", "pcie", or GB/s of a GPU and microseconds. Errors:
/// Error(usage) naming the word and what it may be.
Cluster cluster_from(const std::string& text);

/// A step on one GPU that was measured.
struct MeasuredStep {
  int64_t samples = 0;
  double seconds = 0;
};
/// "16384:1.05": samples and milliseconds. Errors: Error(usage).
MeasuredStep measured_step_from(const std::string& text);

/// What a GPU has to do in a step. Exchanges are those of one direction.
struct ScaleForecast {
  int64_t hosts = 1, gpus = 1, samples = 0;  ///< samples: of all GPUs
  double layers = 0, tables = 0, starts = 0;
  double busiest = 1;  ///< the work of the busiest GPU on tables, of the mean
  double vectors_inside = 0, vectors_between = 0, keys = 0, sums = 0;
  double bytes_between = 0;  ///< that leave a host in a step: keys, vectors and gradients, sums
  double seconds = 0;
  std::string bound;  ///< the part that takes most of it
};

/// For config.solver.batchsize samples in all on all GPUs of the cluster. What leaves a host is what is there: each
/// different key of its samples once with the places of its occurrences, and as many vectors and sums of gradients as
/// there are such keys or bags, whichever is less. `measured`: in
/// ascending order; the forecast of one GPU is scaled to them. Errors: those of forecast_step().
ScaleForecast forecast_scale(const Config&, const Cluster&, const Ceilings&, double gpu_bytes,
                             const std::vector<MeasuredStep>& measured);

}  // namespace hctr
