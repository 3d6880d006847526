// What data sheets say of GPUs, and which share of it kernels reach.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "train/machine_ceilings.h"

namespace hctr {

/// A GPU as its data sheet has it: bytes a second, and FLOP a second without sparsity. The link is the one to the other
/// GPUs of its host, in one direction.
struct KnownGpu {
  std::string_view name;
  double memory_gib, memory_bytes_a_second, f32, tf32, half, link_bytes_a_second;
};

/// The names that --gpu-name takes.
std::vector<std::string> gpu_names();
/// By one of these names, or by the name that the driver gives the GPU; none: not known.
std::optional<KnownGpu> find_known_gpu(std::string_view name);

/// What kernels reach of it. Products of f32 are those of TF32 if `tf32`.
Ceilings expected_ceilings(const KnownGpu&, DType products, bool tf32);

}  // namespace hctr
