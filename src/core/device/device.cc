#include "core/device/device.h"

#include <unistd.h>

#include <fstream>

#include "core/base/expect.h"
#include "core/base/free_memory.h"
#include "core/base/platform.h"
#include "core/base/processor.h"
#include "core/base/thread_pool.h"
#include "core/device/cuda_runtime_calls.h"

namespace hctr {

std::string to_string(Device device) { return device.is_cuda() ? cat("cuda:", device.index) : "cpu"; }

GpuSearch find_gpus() {
  if constexpr (kCudaBuild) return cuda::find_gpus();
  return {0, "this build contains no CUDA code"};
}

void expect_built(Device device) {
  if (device.is_cuda() && !kCudaBuild) throw Error(Kind::device, cat(to_string(device), ": ", find_gpus().why_none));
}

std::string describe(Device device) {
  expect_built(device);
  if (device.is_cuda()) {
    if constexpr (kCudaBuild) return cuda::describe(device.index);
  }
  const int cores = usable_cores();
  return cat(processor_name(), ", ", cores, cores == 1 ? " core" : " cores");
}

int64_t used_memory(Device device) {
  expect_built(device);
  if (device.is_cuda()) {
    if constexpr (kCudaBuild) return cuda::used_memory(device.index);
  }
  std::ifstream statistics("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statistics >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t free_memory(Device device) {
  expect_built(device);
  if (device.is_cuda()) {
    if constexpr (kCudaBuild) return cuda::free_memory(device.index);
  }
  return free_host_memory();
}

}  // namespace hctr
