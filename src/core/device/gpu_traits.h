// The GPU properties that planning rules depend on, as plain values, so that plans for a GPU can be made on a machine
// without that GPU.
#pragma once

#include <optional>

#include "core/device/device.h"

namespace hctr {

struct GpuTraits {
  int multiprocessors = 132, compute_capability = 90;  ///< default: H100 or H200 (SXM)
  bool is_hopper() const { return compute_capability == 90; }
};

/// The traits of this device, which must be current in the calling thread; nullopt for a CPU.
std::optional<GpuTraits> gpu_traits(Device);

}  // namespace hctr
