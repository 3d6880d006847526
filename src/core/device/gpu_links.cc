#include "core/device/gpu_links.h"

#include "core/base/expect.h"
#include "core/base/platform.h"

namespace hctr {

GpuLinks gpu_links(Device device) {
  HCTR_EXPECT(device.is_cuda(), "links of ", to_string(device));
  expect_built(device);
  if constexpr (kCudaBuild) return cuda::gpu_links(device.index);
  return {};
}

}  // namespace hctr
