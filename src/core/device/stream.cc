#include "core/device/stream.h"

#include "core/base/platform.h"
#include "core/device/cuda_runtime_calls.h"

namespace hctr {

void StreamRef::synchronize() const {
  if constexpr (kCudaBuild)
    if (device.is_cuda()) cuda::synchronize(*this);
}

bool StreamRef::is_capturing() const {
  if constexpr (kCudaBuild)
    if (device.is_cuda()) return cuda::is_capturing(*this);
  return false;
}

Stream::Stream(Device device, [[maybe_unused]] StreamPriority priority) : ref_{device, nullptr} {
  if constexpr (kCudaBuild)
    if (device.is_cuda()) ref_.handle = cuda::create_stream(device.index, priority);
}

Stream::~Stream() {
  if constexpr (kCudaBuild)
    if (ref_.handle) cuda::destroy_stream(ref_.handle);
}

Event::Event(Device device) : device_(device) {
  if constexpr (kCudaBuild)
    if (device.is_cuda()) handle_ = cuda::create_event(device.index);
}

Event::~Event() {
  if constexpr (kCudaBuild)
    if (handle_) cuda::destroy_event(handle_);
}

void Event::record(StreamRef stream) {
  if constexpr (kCudaBuild)
    if (handle_) cuda::record(handle_, stream);
}

void Event::make_wait(StreamRef stream) const {
  if constexpr (kCudaBuild)
    if (handle_) cuda::make_wait(handle_, stream);
}

void Event::synchronize() const {
  if constexpr (kCudaBuild)
    if (handle_) cuda::synchronize_event(handle_);
}

}  // namespace hctr
