// Data-sheet figures of GPUs, and the share of them that kernels reach.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "train/machine_ceilings.h"

namespace hctr {

/// A GPU by its data sheet: bytes per second, and FLOP per second without sparsity. The link is to the other GPUs of
/// its host, in one direction.
struct KnownGpu {
  std::string_view name;
  double memory_gib, memory_bytes_a_second, f32, tf32, half, link_bytes_a_second;
};

/// The names that --gpu-name takes.
std::vector<std::string> gpu_names();
/// Finds a GPU by one of these names, or by the driver's name for it; none: unknown.
std::optional<KnownGpu> find_known_gpu(std::string_view name);

/// The rates that kernels reach on it. `tf32`: f32 GEMMs use TF32.
Ceilings expected_ceilings(const KnownGpu&, DType products, bool tf32);

}  // namespace hctr
