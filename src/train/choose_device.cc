#include "train/choose_device.h"

namespace hctr {

Device choose_device(DeviceChoice choice, const GpuLists& gpus, const Log& log) {
  const int64_t named = gpus.count();
  Device device;
  if (choice != DeviceChoice::cpu) {
    const GpuSearch search = find_gpus();
    if (search.count > 0) {
      for (const auto& list : gpus.per_process)
        if (!list.empty()) {
          device = {DeviceKind::cuda, static_cast<int>(list.front())};
          break;
        }
    } else if (choice == DeviceChoice::cuda) {
      throw Error(Kind::device, cat("--device cuda: no usable GPU: ", search.why_none, "; --device cpu trains without one"));
    } else {
      log.info("No usable GPU (", search.why_none, "): training on the CPU.");
    }
  }
  log.info("Device: ", device.is_cuda() ? to_string(device) + ", " : "", describe(device));
  if (named > 1)
    log.info("The config names ", named, " GPUs; this version trains on one. The batch is counted over all GPUs, so the numbers stay the same.");
  return device;
}

}  // namespace hctr
