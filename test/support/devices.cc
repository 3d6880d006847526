#include "support/devices.h"

#include <map>
#include <memory>
#include <tuple>

namespace hctr::test {

std::string why_no_gpu() {
  static const GpuSearch found = find_gpus();
  return found.count > 0 ? "" : found.why_none;
}

std::vector<Device> devices() { return why_no_gpu().empty() ? std::vector{kCpu, kGpu} : std::vector{kCpu}; }

Runtime& runtime_of(Device device, int threads, bool tf32) {
  static std::map<std::tuple<DeviceKind, int, int, bool>, std::unique_ptr<Runtime>> runtimes;
  auto& runtime = runtimes[{device.kind, device.index, device.is_cuda() ? 1 : threads, tf32}];
  if (!runtime)
    runtime = std::make_unique<Runtime>(device, RuntimeOptions{.threads = threads, .seed = 7, .tf32 = tf32});
  return *runtime;
}

}  // namespace hctr::test
