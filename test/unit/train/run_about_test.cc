#include "train/run_about.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

/// The proprietary kernel module prints "x86_64" before "Kernel Module", the open module after it. The version follows
/// in both lines.
TEST(RunAbout, TheDriversVersionIsFoundInItsLine) {
  EXPECT_EQ(
      driver_version_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024"),
      "550.54.15");
  EXPECT_EQ(driver_version_in("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  "
                              "(builder@machine)"),
            "580.159.04");
  EXPECT_EQ(driver_version_in("NVRM version: none"), "NVRM version: none");
}

TEST(RunAbout, KeepsTheFirstStartAndTheLatest) {
  Json file;
  for (int64_t i = 0; i < 250; ++i) {
    const Json before = file;
    file = about_run_file("run", Json(Json::Object{}), Json(), Json(Json::Object{{"started", i}}),
                          i == 0 ? nullptr : &before);
  }
  const Json::Array& starts = *file.find("starts")->array();
  ASSERT_EQ(starts.size(), kMostStarts);
  EXPECT_EQ(*starts[0].find("started")->integer(), 0);
  EXPECT_EQ(*starts[1].find("started")->integer(), 151);
  EXPECT_EQ(*starts.back().find("started")->integer(), 249);
  EXPECT_EQ(*file.find(kStartsLeftOut)->integer(), 150);
  EXPECT_EQ(*with_end(file, "stopped").find(kStartsLeftOut)->integer(), 150);
}

}  // namespace
}  // namespace hctr::test
