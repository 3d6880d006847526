#include "core/device/current_device.h"

#include "core/base/platform.h"
#include "core/device/cuda_runtime_calls.h"

namespace hctr {

CurrentDevice::CurrentDevice(bool gpu) {
  if (!gpu) return;
  if constexpr (kCudaBuild) before_ = cuda::current_device();
}

CurrentDevice::CurrentDevice(Device device) {
  if (!device.is_cuda()) return;
  if constexpr (kCudaBuild) {
    // make_current() takes microseconds, so a thread calls it once while the device stays current. A device that became
    // current without that call may lack a context.
    thread_local int made_current = -1;
    before_ = cuda::current_device();
    if (before_ == device.index && made_current == device.index) return;
    cuda::make_current(device.index);
    made_current = device.index;
  }
}

CurrentDevice::~CurrentDevice() {
  if constexpr (kCudaBuild) cuda::restore_current(before_);
}

}  // namespace hctr
