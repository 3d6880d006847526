// Reserved memory for operations that must not fail.
#include "core/device/held_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace hctr {
namespace {

constexpr Device kHost{};

bool lies_in(const std::byte* data, const std::byte* first, size_t bytes) {
  return data >= first && data < first + bytes;
}

TEST(HeldMemory, IsTakenInPiecesThatDoNotOverlapAndIsFreeAgainBehindTheLast) {
  HeldMemory held;
  held.hold(kHost, 4096);
  const std::byte* first = nullptr;
  {
    const HeldBuffer a(held, kHost, 1000), b(held, kHost, 1);
    first = a.data();
    EXPECT_EQ(b.data(), a.data() + 1024) << "aligned to 256 bytes";
    std::vector<HeldBuffer> more;
    for (int i = 0; i < 3; ++i) more.emplace_back(held, kHost, 512);  // growing the vector move-constructs the buffers
    for (const HeldBuffer& each : more) EXPECT_TRUE(lies_in(each.data(), first, 4096));
    EXPECT_NE(more[1].data(), more[2].data());
  }
  const HeldBuffer again(held, kHost, 4096);
  EXPECT_EQ(again.data(), first);
}

TEST(HeldMemory, WithoutRoomABufferHasMemoryOfItsOwn) {
  HeldMemory held;
  const HeldBuffer none(held, kHost, 16);
  EXPECT_NE(none.data(), nullptr);
  held.hold(kHost, 512);
  const HeldBuffer inside(held, kHost, 300), outside(held, kHost, 300), empty(held, kHost, 0);
  EXPECT_FALSE(lies_in(outside.data(), inside.data(), 512));
  EXPECT_EQ(empty.data(), nullptr);
  outside.data()[299] = std::byte{1};
}

}  // namespace
}  // namespace hctr
