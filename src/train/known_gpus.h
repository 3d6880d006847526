// Data-sheet rates of GPUs, and the fraction of these rates that kernels reach.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "train/machine_ceilings.h"

namespace hctr {

/// Data-sheet rates of a GPU: bytes per second, and FLOP per second without sparsity. The link is one direction of the
/// connection to the other GPUs of the host.
struct KnownGpu {
  std::string_view name;
  double memory_gib, memory_bytes_a_second, f32, tf32, half, link_bytes_a_second;
};

/// The names that --gpu-name accepts.
std::vector<std::string> gpu_names();
/// Finds a GPU by a name of gpu_names(), or by the driver's name of the GPU; none if unknown.
std::optional<KnownGpu> find_known_gpu(std::string_view name);

/// The rates that kernels reach on the GPU. `tf32`: whether f32 GEMMs use TF32.
Ceilings expected_ceilings(const KnownGpu&, DType products, bool tf32);

}  // namespace hctr
