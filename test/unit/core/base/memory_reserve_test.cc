#include "core/base/memory_reserve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

#include "core/base/expect.h"
#include "core/base/platform.h"

namespace hctr::test {
namespace {

/// Memory of the process in kilobytes, from the entry `name` of /proc/self/status.
int64_t kilobytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (int64_t value = 0; word == name + ":" && status >> value) return value;
  return -1;
}

TEST(MemoryReserve, HoldsAddressesWithoutMemoryUntilItIsReleased) {
  if (kSanitized) GTEST_SKIP() << "sanitizers use memory beside";
  constexpr size_t kBytes = 64 << 20, kKilobytes = kBytes >> 10;
  MemoryReserve reserve;
  const int64_t size = kilobytes("VmSize"), resident = kilobytes("VmRSS");
  reserve.add(kBytes / 2);
  reserve.add(kBytes / 2);
  EXPECT_EQ(reserve.bytes(), kBytes);
  EXPECT_GE(kilobytes("VmSize"), size + static_cast<int64_t>(kKilobytes));
  EXPECT_LT(kilobytes("VmRSS"), resident + 1024);
  EXPECT_FALSE(reserve.released());
  EXPECT_TRUE(reserve.release());
  EXPECT_LT(kilobytes("VmSize"), size + 1024);
  EXPECT_TRUE(reserve.released());
  EXPECT_FALSE(reserve.release()) << "there is none any more";
  reserve.add(kBytes);
  EXPECT_EQ(reserve.bytes(), 0u) << "memory is short: nothing is held again";
}

TEST(MemoryReserve, SaysWhatItCannotHoldAndKeepsWhatItHas) {
  if (kSanitized) GTEST_SKIP() << "sanitizers allow more than there is";
  MemoryReserve reserve;
  ReservedShare share(&reserve);
  share.grow_to(4096);
  EXPECT_THROW(share.grow_to(size_t{1} << 60), Error);
  EXPECT_EQ(reserve.bytes(), 4096u);
  share.grow_to(2048);
  EXPECT_EQ(reserve.bytes(), 4096u) << "a share does not shrink";
}

}  // namespace
}  // namespace hctr::test
