// What rules about a GPU go by, so that they can be asked of one that is not here.
#pragma once

#include <optional>

#include "core/device/device.h"

namespace hctr {

struct GpuTraits {
  int multiprocessors = 132, compute_capability = 90;  ///< the default: an H200 or H100 (SXM)
  bool is_hopper() const { return compute_capability == 90; }
};

/// Of this device, which is that of the calling thread; none: a CPU.
std::optional<GpuTraits> gpu_traits(Device);

}  // namespace hctr
