// Predicts the time of a training step on many GPUs of several hosts, from the step of one GPU and the speed of links.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "train/machine_ceilings.h"

namespace hctr {

/// Equal hosts and the links between them. Rates are one way.
struct Cluster {
  struct Links {
    double bytes = 0;    ///< a second
    double seconds = 0;  ///< latency of an exchange
  };
  int64_t hosts = 1, gpus = 8;  ///< gpus: per host
  Links inside{320e9, 15e-6};   ///< bytes: per GPU
  Links between{};              ///< bytes: of all adapters of a host together
  std::string network;          ///< as given by the user

  int64_t all_gpus() const { return hosts * gpus; }
};

/// Parses "hosts=16,gpus=8,network=8xib400,links=nvlink". Network: adapters by their Gb/s, of which nine tenths count,
/// or GB/s of a host and microseconds as in network=45:20. Links: "nvlink", "pcie", or GB/s of a GPU and microseconds.
/// Errors: Error(usage) naming the word and its valid values.
Cluster cluster_from(const std::string& text);

/// A measured step on one GPU.
struct MeasuredStep {
  int64_t samples = 0;
  double seconds = 0;
};
/// "16384:1.05": samples and milliseconds. Errors: Error(usage).
MeasuredStep measured_step_from(const std::string& text);

/// The work of a GPU in a step. Exchanges are one way.
struct ScaleForecast {
  int64_t hosts = 1, gpus = 1, samples = 0;  ///< samples: over all GPUs
  double layers = 0, tables = 0, starts = 0;
  double busiest = 1;  ///< table work of the busiest GPU, relative to the mean
  double vectors_inside = 0, vectors_between = 0, keys = 0, sums = 0;
  double bytes_between = 0;  ///< that leave a host per step: keys, vectors and gradients, sums
  double seconds = 0;
  std::string bound;  ///< the part that takes longest
};

/// For config.solver.batchsize samples in total on all GPUs of the cluster. A host sends each distinct key of its
/// samples once, with the places of its occurrences, and one vector and gradient sum per such key or per bag, whichever
/// is fewer. `measured`: in ascending order; the forecast of one GPU is scaled to them. Errors: those of
/// forecast_step().
ScaleForecast forecast_scale(const Config&, const Cluster&, const Ceilings&, double gpu_bytes,
                             const std::vector<MeasuredStep>& measured);

}  // namespace hctr
