#include "core/device/context.h"

#include "core/base/platform.h"
#include "core/device/cuda_runtime_calls.h"

namespace hctr {

Runtime::Runtime(Device device, RuntimeOptions options)
    : device_(device),
      options_(std::move(options)),
      threads_(options_.threads),
      row_memory_(device, options_.row_memory),
      compute_(device, options_.several_ranks ? StreamPriority::step : StreamPriority::lowest),
      prepare_(device),
      keys_(device),
      exchange_(device, options_.several_ranks ? StreamPriority::exchange : StreamPriority::lowest) {
  expect_built(device);
  if constexpr (kCudaBuild)
    if (device.is_cuda()) {
      libraries_.reset(cuda::create_libraries(device.index));
      can_start_early_ = cuda::can_start_early(device.index);
    }
}

Runtime::~Runtime() = default;

void Runtime::adopt_stream(void* handle) {
  const StreamRef next{device_, handle};
  // A recording must not wait for work outside the recording, because that wait would invalidate the recording.
  if (device_.is_cuda() && next.is_capturing() == compute_stream().is_capturing()) {
    Event before(device_);
    before.record(compute_stream());
    before.make_wait(next);
  }
  adopted_ = next;
}

void Runtime::DestroyLibraries::operator()(CudaLibraries* libraries) const {
  if constexpr (kCudaBuild) cuda::destroy_libraries(libraries);
}

}  // namespace hctr
