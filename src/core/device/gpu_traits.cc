#include "core/device/gpu_traits.h"

#include "core/base/platform.h"
#include "core/device/cuda_runtime_calls.h"

namespace hctr {

std::optional<GpuTraits> gpu_traits(Device device) {
  if constexpr (kCudaBuild)
    if (device.is_cuda()) return GpuTraits{cuda::multiprocessors(), cuda::compute_capability()};
  return std::nullopt;
}

}  // namespace hctr
