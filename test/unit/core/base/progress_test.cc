#include "core/base/progress.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hctr::test {
namespace {

TEST(Progress, ReadableTime) {
  EXPECT_EQ(readable_time(0), "0.00 s");
  EXPECT_EQ(readable_time(0.416), "0.42 s");
  EXPECT_EQ(readable_time(9.99), "9.99 s");
  EXPECT_EQ(readable_time(9.999), "10 s");
  EXPECT_EQ(readable_time(59.4), "59 s");
  EXPECT_EQ(readable_time(59.6), "1 min 00 s");
  EXPECT_EQ(readable_time(125), "2 min 05 s");
  EXPECT_EQ(readable_time(3599.7), "1 h 00 min");
  EXPECT_EQ(readable_time(3 * 3600 + 12 * 60 + 9), "3 h 12 min");
}

TEST(Progress, UnitPrefixes) {
  EXPECT_EQ(with_unit_prefix(0), "0");
  EXPECT_EQ(with_unit_prefix(0.5), "0.50");
  EXPECT_EQ(with_unit_prefix(950), "950");
  EXPECT_EQ(with_unit_prefix(999.6), "1.00 k");
  EXPECT_EQ(with_unit_prefix(12345), "12.3 k");
  EXPECT_EQ(with_unit_prefix(123456), "123 k");
  EXPECT_EQ(with_unit_prefix(999999), "1.00 M");
  EXPECT_EQ(with_unit_prefix(4.2e6), "4.20 M");
  EXPECT_EQ(with_unit_prefix(7e12), "7.00 T");
}

TEST(Progress, PrintsALastLineWithoutATerminal) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress("reading", "rows", 2000);
    progress.update(1000);
    progress.update(2000);
    progress.finish();
    progress.finish();
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("reading: 2.00 k rows in "), 0u) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

}  // namespace
}  // namespace hctr::test
