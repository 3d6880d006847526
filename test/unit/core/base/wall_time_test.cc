#include "core/base/wall_time.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

TEST(WallTime, IsIso8601InUtc) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(utc_text(951782400.5), "2000-02-29T00:00:00.500Z") << "a leap day";
  EXPECT_EQ(utc_text(1763888888.25), "2025-11-23T09:08:08.250Z");
  EXPECT_GT(unix_time(), 1.7e9);
}

}  // namespace
}  // namespace hctr::test
