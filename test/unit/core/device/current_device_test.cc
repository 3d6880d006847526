// The current CUDA device of the calling thread does not change.
#include "core/device/current_device.h"

#include <gtest/gtest.h>

#include "core/base/platform.h"
#include "core/device/cuda_runtime_calls.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

TEST(CurrentDevice, IsNothingOnACpu) { const CurrentDevice kept(false), cpu{Device{}}; }

TEST(CurrentDevice, IsWhatItWasAfterCallsThatSetAnother) {
  if (find_gpus().count < 2) GTEST_SKIP() << "needs two GPUs";
  if constexpr (kCudaBuild) {
    cuda::free(0, cuda::allocate(0, 1));  // initializes device 0
    {
      const CurrentDevice kept(true);
      cuda::free(1, cuda::allocate(1, 1));
      EXPECT_EQ(cuda::current_device(), 1);
    }
    EXPECT_EQ(cuda::current_device(), 0);
    {
      const CurrentDevice other({DeviceKind::cuda, 1});
      EXPECT_EQ(cuda::current_device(), 1);
    }
    EXPECT_EQ(cuda::current_device(), 0);
  }
}

}  // namespace
}  // namespace hctr::test
