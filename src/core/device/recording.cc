#include "core/device/recording.h"

#include "core/base/platform.h"
#include "core/device/cuda_recording.h"
#include "core/device/cuda_runtime_calls.h"

namespace hctr {

CrossingEvent::CrossingEvent(Device device) : device_(device) {
  if constexpr (kCudaBuild)
    if (device.is_cuda()) handle_ = cuda::create_event(device.index);
}

CrossingEvent::~CrossingEvent() {
  if constexpr (kCudaBuild)
    if (handle_) cuda::destroy_event(handle_);
}

void CrossingEvent::record(StreamRef stream) {
  if constexpr (kCudaBuild)
    if (handle_) crosses_ ? cuda::record_crossing(handle_, stream) : cuda::record(handle_, stream);
}

void CrossingEvent::make_wait(StreamRef stream) const {
  if constexpr (kCudaBuild)
    if (handle_) crosses_ ? cuda::make_wait_crossing(handle_, stream) : cuda::make_wait(handle_, stream);
}

}  // namespace hctr
