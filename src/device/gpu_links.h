// Which GPUs of a host reach each other's memory.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"

namespace hctr {

/// GPUs by what names them alike in all processes of a host.
struct GpuLinks {
  std::string id;  ///< of the GPU asked about
  std::vector<std::string>
      unreachable;  ///< of those that this process sees: whose memory it cannot read, or that cannot read its
};

/// Errors: Error(device), also for the CPU.
GpuLinks gpu_links(Device);

namespace cuda {
GpuLinks gpu_links(int index);  // in CUDA builds alone
}

}  // namespace hctr
