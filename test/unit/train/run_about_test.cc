#include "train/run_about.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

/// Both kernel modules name the processor, before the version or behind it.
TEST(RunAbout, TheDriversVersionIsFoundInItsLine) {
  EXPECT_EQ(
      driver_version_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024"),
      "550.54.15");
  EXPECT_EQ(driver_version_in("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  "
                              "(builder@machine)"),
            "580.159.04");
  EXPECT_EQ(driver_version_in("NVRM version: none"), "NVRM version: none");
}

}  // namespace
}  // namespace hctr::test
