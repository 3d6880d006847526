#include "prepare/init/time_text.h"

#include <gtest/gtest.h>

namespace hctr {
namespace {

TEST(TimeText, DatesAndTimesOfDayAreTimes) {
  for (const char* text : {"2026-11-23", "2026/1/3", "23.11.2026", "1.2.2026", "23.11.26", "11/23/2026", "23/11/26",
                           "31-12-1999", "2026-11-23 10:40", "2026-11-23T10:40:00Z", "2026-11-23 10:40:00.125+01:00",
                           "23.11.2026 10:40", "10:40:00", "9:05:59", "23:59:60", "10:40:00.125"})
    EXPECT_TRUE(is_time_text(text)) << text;
}

TEST(TimeText, AddressesVersionsAndTokensAreNot) {
  for (const char* text :
       {"10.0.0.1",   "192.168.1.77", "1.1.20.25",  "10.0.12.*", "10.11.12.0/24", "1.2.3",        "4.15.0-58",
        "2.11.0rc1",  "3:117:1",      "1:2:0.5",    "12:10:7",   "7:00012:1",     "555-123-4567", "12/2026",
        "2026-13-01", "32.12.2026",   "2026-00-10", "24:00:00",  "10:60:00",      "2026-11-23x",  "2026-11-23 morning",
        "1/2/3/4",    "0.0.2026",     "3000-01-01"})
    EXPECT_FALSE(is_time_text(text)) << text;
}

}  // namespace
}  // namespace hctr
