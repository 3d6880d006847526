// Which GPUs of a host can access each other's memory.
#pragma once

#include <string>
#include <vector>

#include "core/device/device.h"

namespace hctr {

/// GPUs are given by their UUIDs, which are the same in all processes of a host.
struct GpuLinks {
  std::string id;  ///< UUID of the GPU itself
  /// GPUs visible to this process whose memory the GPU cannot access, or that cannot access its memory.
  std::vector<std::string> unreachable;
  /// GPUs visible to this process that NVLink joins with it: their memory takes atomic operations from each other,
  /// which PCIe does not pass on.
  std::vector<std::string> nvlink = {};
};

/// Errors: Error(device), also for the CPU.
GpuLinks gpu_links(Device);

namespace cuda {
GpuLinks gpu_links(int index);  // only in CUDA builds
}

}  // namespace hctr
