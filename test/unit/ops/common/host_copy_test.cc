#include "ops/common/host_copy.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "core/device/buffer.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

/// Copies from the host to the device. Then one call copies back in two pieces of other lengths, and sets `done` at its
/// end.
TEST(HostCopy, CopiesBothWaysAndReportsTheEnd) {
  for (const Device device : devices()) {
    constexpr size_t kBytes = 50000, kFirst = 20001;
    constexpr size_t kSecondAt = 20016;  // the next multiple of 16 bytes
    Runtime& runtime = runtime_of(device);
    Context ctx(runtime, runtime.compute_stream());
    const HostBuffer from(device, kBytes), to(device, kBytes + 256);
    const Buffer there(device, kBytes);
    for (size_t i = 0; i < kBytes; ++i) from.data()[i] = static_cast<std::byte>(i * 7 % 251);
    auto* const done = reinterpret_cast<uint32_t*>(to.data() + kBytes / 256 * 256 + 256);
    const ops::HostCopy forth{there.data(), from.data(), kBytes};
    ops::copy_with_host(ctx, {&forth, 1}, nullptr);
    EXPECT_EQ(*done, 0u);
    const std::array back = {ops::HostCopy{to.data(), there.data(), kFirst},
                             ops::HostCopy{to.data() + kSecondAt, there.data() + kSecondAt, kBytes - kSecondAt}};
    ops::copy_with_host(ctx, back, done);
    ctx.stream().synchronize();
    EXPECT_EQ(*done, 1u);
    EXPECT_EQ(std::memcmp(to.data(), from.data(), kFirst), 0);
    EXPECT_EQ(std::memcmp(to.data() + kSecondAt, from.data() + kSecondAt, kBytes - kSecondAt), 0);
  }
}

}  // namespace
}  // namespace hctr::test
