// Free ranges of memory are merged, and the smallest range that fits is found.
#include "store/free_ranges.h"

#include <gtest/gtest.h>

namespace hctr {
namespace {

using Ranges = std::map<uint64_t, uint64_t>;

TEST(FreeRanges, MergesRangesThatTouch) {
  FreeRanges free;
  free.add(0, 16);
  free.add(32, 16);
  EXPECT_EQ(free.ranges(), (Ranges{{0, 16}, {32, 16}}));
  free.add(16, 16);
  EXPECT_EQ(free.ranges(), (Ranges{{0, 48}}));
  EXPECT_EQ(free.find(48), 0u) << "the merged range is found by its whole size";
}

TEST(FreeRanges, FindsTheSmallestRangeThatFits) {
  FreeRanges free;
  free.add(0, 64);
  free.add(100, 32);
  free.add(200, 16);
  EXPECT_EQ(free.find(32), 100u);
  EXPECT_EQ(free.find(33), 0u);
  EXPECT_EQ(free.find(65), std::nullopt);
}

TEST(FreeRanges, KeepsTheRestOfATakenRange) {
  FreeRanges free;
  free.add(0, 64);
  free.take(0, 16);
  EXPECT_EQ(free.ranges(), (Ranges{{16, 48}}));
  EXPECT_EQ(free.find(64), std::nullopt);
  free.take(16, 48);
  EXPECT_TRUE(free.ranges().empty());
  EXPECT_EQ(free.find(1), std::nullopt);
}

}  // namespace
}  // namespace hctr
