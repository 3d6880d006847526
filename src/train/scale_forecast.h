// Predicts the time of a training step on many GPUs of several hosts, from the step time of one GPU and the link
// speeds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "train/machine_ceilings.h"

namespace hctr {

/// A cluster of equal hosts. The rates of its links are those of one direction.
struct Cluster {
  struct Links {
    double bytes = 0;    ///< bytes per second
    double seconds = 0;  ///< latency of an exchange
  };
  int64_t hosts = 1, gpus = 8;  ///< `gpus`: number per host
  Links inside{320e9, 15e-6};   ///< `bytes`: per GPU and second
  Links between{};              ///< `bytes`: per second, of all adapters of a host together
  std::string network;          ///< text of the "network" argument

  int64_t all_gpus() const { return hosts * gpus; }
};

/// Parses "hosts=16,gpus=8,network=8xib400,links=nvlink". "network" gives the adapters of a host with their nominal
/// rate in Gb/s; the forecast assumes that nine tenths of this rate carry data. In its other form, network=45:20, it
/// gives the GB/s of a host and the latency in microseconds. "links" is "nvlink", "pcie", or the GB/s of a GPU and the
/// latency in microseconds. Errors: Error(usage) with the invalid word and the valid values.
Cluster cluster_from(const std::string& text);

/// A measured step on one GPU.
struct MeasuredStep {
  int64_t samples = 0;
  double seconds = 0;
};
/// Parses samples and milliseconds, as in "16384:1.05". Errors: Error(usage).
MeasuredStep measured_step_from(const std::string& text);

/// The predicted step of one GPU; times are in seconds. `vectors_inside` and `vectors_between` are the times to send
/// vectors in the forward pass; the backward pass needs the same times again to send gradients.
struct ScaleForecast {
  int64_t hosts = 1, gpus = 1, samples = 0;  ///< `samples`: of all GPUs together
  double layers = 0, tables = 0, starts = 0;
  double busiest = 1;  ///< table work of the busiest GPU, relative to the mean
  double vectors_inside = 0, vectors_between = 0, keys = 0, sums = 0;
  double bytes_between = 0;  ///< bytes that a host sends per step: keys, vectors, gradients, all-reduces
  double memory = 0;         ///< memory of the fullest GPU in bytes, as --check computes it
  double seconds = 0;
  std::string bound;  ///< the part that takes longest
};

/// Predicts a step with config.solver.batchsize samples in total on all GPUs of the cluster. A host sends each distinct
/// key of its samples once, with the positions of its occurrences. It sends one vector and one gradient sum per
/// distinct key or per bag, whichever is fewer. `measured`: steps sorted by samples. If there are any, the forecast for
/// one GPU is scaled by measured / predicted time. Errors: those of forecast_step().
ScaleForecast forecast_scale(const Config&, const Cluster&, const Ceilings&, double gpu_bytes,
                             const std::vector<MeasuredStep>& measured);

}  // namespace hctr
