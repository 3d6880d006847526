// Finds which GPUs of a host can access each other's memory.
#pragma once

#include <string>
#include <vector>

#include "core/device/device.h"

namespace hctr {

/// The connections of one GPU. GPUs are identified by UUID, which is the same in all processes of a host.
struct GpuLinks {
  std::string id;  ///< UUID of the described GPU
  /// Visible GPUs without mutual memory access to the described GPU.
  std::vector<std::string> unreachable;
  /// Visible GPUs connected to the described GPU by NVLink. NVLink supports atomic operations on the memory of the
  /// other GPU, which PCIe does not.
  std::vector<std::string> nvlink = {};
};

/// Errors: Error(device), also for the CPU.
GpuLinks gpu_links(Device);

namespace cuda {
GpuLinks gpu_links(int index);  // only in CUDA builds
}

}  // namespace hctr
