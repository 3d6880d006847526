// The properties of a GPU that rules depend on, so that plans for a GPU can be made without one.
#pragma once

#include <optional>

#include "core/device/device.h"

namespace hctr {

struct GpuTraits {
  int multiprocessors = 132, compute_capability = 90;  ///< the default: an H200 or H100 (SXM)
  bool is_hopper() const { return compute_capability == 90; }
};

/// The traits of this device, which must be current in the calling thread; none: a CPU.
std::optional<GpuTraits> gpu_traits(Device);

}  // namespace hctr
