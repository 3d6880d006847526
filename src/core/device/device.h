// A device: the CPU or one GPU.
#pragma once

#include <cstdint>
#include <string>

namespace hctr {

enum class DeviceKind : uint8_t { cpu, cuda };

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  bool is_cuda() const { return kind == DeviceKind::cuda; }
  bool operator==(const Device&) const = default;
};

/// Returns "cpu" or, for example, "cuda:0".
std::string to_string(Device);

/// The number of GPUs found. `why_none`: the reason if there are none (no CUDA in this build, no driver, ...).
struct GpuSearch {
  int count = 0;
  std::string why_none;
};
GpuSearch find_gpus();

/// Throws Error(device) for a CUDA device if the build has no CUDA code.
void expect_built(Device);

/// Describes the device: "NVIDIA H100 80GB HBM3, compute capability 9.0, 79.2 GiB", or the processor's name and the
/// number of usable cores. Errors: Error(device) if a CUDA device does not exist or has a compute capability below 7.5.
std::string describe(Device);

/// Free memory of the device in bytes. Errors: Error(device).
int64_t free_memory(Device);
/// Used memory in bytes. GPU: used by all programs. CPU: used by this process. Errors: Error(device).
int64_t used_memory(Device);

}  // namespace hctr
