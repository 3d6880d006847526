#include "core/device/buffer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/device/copy_bytes.h"
#include "core/device/host_parts.h"
#include "support/devices.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

std::vector<unsigned char> bytes_at(Device device, const std::byte* data, size_t count) {
  std::vector<unsigned char> bytes(count);
  const StreamRef stream = runtime_of(device).compute_stream();
  copy_bytes(stream, bytes.data(), data, count);
  stream.synchronize();
  return bytes;
}

void write_at(Device device, std::byte* data, const std::vector<unsigned char>& bytes) {
  const StreamRef stream = runtime_of(device).compute_stream();
  copy_bytes(stream, data, bytes.data(), bytes.size());
  stream.synchronize();
}

TEST(Buffer, IsZeroAlignedAndMovable) {
  for (const Device device : devices()) {
    Buffer buffer(device, 1001);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 256, 0u);
    EXPECT_EQ(bytes_at(device, buffer.data(), 1001), std::vector<unsigned char>(1001));
    const std::byte* data = buffer.data();
    Buffer moved = std::move(buffer);
    EXPECT_EQ(moved.data(), data);
    EXPECT_EQ(moved.bytes(), 1001u);
    EXPECT_EQ(moved.device(), device);
    EXPECT_EQ(Buffer(device, 0).data(), nullptr);
  }
}

TEST(Buffer, OnAGpuInABuildWithoutCudaIsAnError) {
  if (kCudaBuild) GTEST_SKIP() << "this build has CUDA code";
  EXPECT_EQ(message_of(Kind::device, [] { Buffer(kGpu, 8); }), "cuda:0: this build contains no CUDA code");
  EXPECT_EQ(message_of(Kind::device, [] { HostBuffer(kGpu, 8); }), "cuda:0: this build contains no CUDA code");
  EXPECT_EQ(message_of(Kind::device, [] { ReservedBuffer(kGpu, 8); }), "cuda:0: this build contains no CUDA code");
  EXPECT_EQ(message_of(Kind::device, [] { Runtime(kGpu, {}); }), "cuda:0: this build contains no CUDA code");
}

TEST(HostBuffer, IsZeroAndMovable) {
  for (const Device device : devices()) {
    HostBuffer buffer(device, 300);
    for (size_t i = 0; i < 300; ++i) EXPECT_EQ(buffer.data()[i], std::byte{0});
    std::byte* data = buffer.data();
    HostBuffer moved = std::move(buffer);
    EXPECT_EQ(moved.data(), data);
  }
}

TEST(ReservedBuffer, GrowsInPlaceKeepingItsContent) {
  for (const Device device : devices()) {
    ReservedBuffer range(device, size_t{64} << 20);
    std::byte* const data = range.data();
    EXPECT_EQ(range.bytes(), 0u);
    range.grow(1);
    const size_t granule = range.bytes();
    ASSERT_GT(granule, 0u);
    const std::vector<unsigned char> mark = {1, 2, 3, 4};
    write_at(device, data, mark);
    range.grow(granule + 1);
    EXPECT_EQ(range.data(), data);
    EXPECT_EQ(range.bytes(), 2 * granule);
    EXPECT_EQ(bytes_at(device, data, 4), mark);
    EXPECT_EQ(bytes_at(device, data + granule, granule), std::vector<unsigned char>(granule)) << "new memory is zero";
    range.grow(5);
    EXPECT_EQ(range.bytes(), 2 * granule) << "it never shrinks";
  }
}

TEST(ReservedBuffer, IsZeroAgainAfterRelease) {
  for (const Device device : devices()) {
    ReservedBuffer range(device, size_t{64} << 20);
    std::byte* const data = range.data();
    range.grow(1);
    write_at(device, data, {9, 9, 9, 9});
    range.release();
    EXPECT_EQ(range.bytes(), 0u);
    range.grow(1);
    EXPECT_EQ(range.data(), data);
    EXPECT_EQ(bytes_at(device, data, 4), std::vector<unsigned char>(4));
  }
}

TEST(ReservedBuffer, RefusesToGrowBeyondItsAddresses) {
  for (const Device device : devices()) {
    ReservedBuffer range(device, 1);
    range.grow(1);
    const size_t most = range.most_bytes();
    write_at(device, range.data(), {7});
    const std::string message = message_of(Kind::device, [&] { range.grow(most + 1); });
    EXPECT_EQ(message.find("a range of " + std::to_string(most) + " bytes was reserved, but "), 0u) << message;
    EXPECT_EQ(bytes_at(device, range.data(), 1)[0], 7) << "usable memory stays usable";
  }
}

TEST(ReservedBuffer, GoesOnInHostMemoryAtTheSameAddresses) {
  for (const Device device : devices()) {
    SCOPED_TRACE(to_string(device));
    RowMemory budget(device, {});
    const StreamRef stream = runtime_of(device).compute_stream();
    {
      ReservedBuffer range(device, size_t{64} << 20, &budget);
      const size_t granule = range.granularity();
      range.grow(1);
      range.grow_on_host(granule + 1);
      EXPECT_EQ(range.device_bytes(), granule);
      EXPECT_EQ(range.bytes(), 2 * granule);
      EXPECT_EQ(budget.device_bytes(), static_cast<int64_t>(granule));
      EXPECT_EQ(budget.host_bytes(), static_cast<int64_t>(granule));
      std::vector<unsigned char> all(2 * granule, 1), pattern(granule);
      range.read(stream, 0, all.data(), all.size());
      stream.synchronize();
      EXPECT_EQ(all, std::vector<unsigned char>(2 * granule)) << "new memory is zero";
      for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<unsigned char>(i * 7 + 1);
      const size_t first = granule / 2 + 3;  // starts a write that crosses the granule boundary
      range.write(stream, first, pattern.data(), pattern.size());
      range.grow_on_host(3 * granule);
      std::vector<unsigned char> back(granule);
      range.read(stream, first, back.data(), back.size());
      stream.synchronize();
      EXPECT_EQ(back, pattern);
      range.zero(stream, granule - 5, 10);
      range.read(stream, granule - 6, back.data(), 12);
      stream.synchronize();
      for (size_t i = 0; i < 12; ++i) EXPECT_EQ(back[i], i > 0 && i < 11 ? 0 : pattern[granule - 6 - first + i]) << i;
    }
    EXPECT_EQ(budget.device_bytes(), 0);
    EXPECT_EQ(budget.host_bytes(), 0);
  }
}

TEST(ReservedBuffer, MovesToTheHostWhatItHolds) {
  for (const Device device : devices()) {
    SCOPED_TRACE(to_string(device));
    RowMemory budget(device, {.host = int64_t{1} << 30});
    const StreamRef stream = runtime_of(device).compute_stream();
    {
      ReservedBuffer range(device, size_t{64} << 20, &budget);
      const size_t granule = range.granularity();
      range.grow(4 * granule);
      range.grow_on_host(5 * granule);
      std::vector<unsigned char> all(5 * granule), back(all.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<unsigned char>(i * 7 + i / granule);
      range.write(stream, 0, all.data(), all.size());
      std::byte* const data = range.data();
      for (const size_t first : {4 * granule, 3 * granule + 5, 3 * granule, granule + 1, size_t{0}}) {
        const size_t border = first / granule * granule;  // only whole granules move
        EXPECT_EQ(range.bytes_to_host(first), range.device_bytes() - border);
        range.move_to_host(stream, first);
        EXPECT_EQ(range.device_bytes(), border);
        EXPECT_EQ(range.bytes(), 5 * granule);
        EXPECT_EQ(range.data(), data);
        EXPECT_EQ(budget.device_bytes(), static_cast<int64_t>(border));
        EXPECT_EQ(budget.host_bytes(), static_cast<int64_t>(5 * granule - border));
        EXPECT_TRUE(in_host_part(data + border, 1));
        EXPECT_TRUE(border == 0 || !in_host_part(data, border));
        range.read(stream, 0, back.data(), back.size());
        stream.synchronize();
        EXPECT_EQ(back, all);
      }
      range.grow_on_host(6 * granule);
      range.read(stream, 0, back.data(), back.size());
      EXPECT_EQ(back, all);
      EXPECT_EQ(range.bytes_to_host(0), 0u);
    }
    EXPECT_EQ(budget.device_bytes(), 0);
    EXPECT_EQ(budget.host_bytes(), 0);
  }
}

TEST(ReservedBuffer, LetsNoPlainCopyReachItsHostPart) {
  for (const Device device : devices()) {
    ReservedBuffer range(device, size_t{64} << 20);
    const StreamRef stream = runtime_of(device).compute_stream();
    range.grow(1);
    const size_t border = range.bytes();
    range.grow_on_host(border + 1);
    std::byte bytes[2];
    copy_bytes(stream, bytes, range.data() + border - 2, 2);
    for (const size_t first : {border - 1, border, range.bytes() - 2}) {
      std::byte* const at = range.data() + first;
      EXPECT_NE(message_of(Kind::bug, [&] { copy_bytes(stream, bytes, at, 2); }).find("in host memory"),
                std::string::npos);
      EXPECT_NE(message_of(Kind::bug, [&] { copy_bytes(stream, at, bytes, 2); }).find("in host memory"),
                std::string::npos);
      EXPECT_NE(message_of(Kind::bug, [&] { zero_bytes(stream, at, 2); }).find("in host memory"), std::string::npos);
    }
    std::byte* const data = range.data();
    range.release();
    EXPECT_FALSE(in_host_part(data, border + 1));
  }
}

TEST(ReservedBuffer, MovesItsMemory) {
  ReservedBuffer range(kCpu, 1 << 20);
  range.grow(10);
  std::memset(range.data(), 5, 10);
  ReservedBuffer moved = std::move(range);
  moved.grow(100000);
  EXPECT_EQ(moved.data()[9], std::byte{5});
}

}  // namespace
}  // namespace hctr::test
