// The list of free row slots.
#include "engine/rows/free_rows.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

std::vector<int32_t> listed(std::span<const int32_t> rows) { return {rows.begin(), rows.end()}; }

TEST(FreeRows, TheLowestAreTakenFirstHoweverTheyCame) {
  FreeRows free;
  EXPECT_TRUE(free.empty());
  free.add(std::vector<int32_t>{4, 9, 20});
  EXPECT_EQ(listed(free.take(1)), std::vector<int32_t>{4});
  free.add(std::vector<int32_t>{2, 4, 12});
  EXPECT_EQ(free.count(), 5);
  EXPECT_EQ(listed(free.rows()), (std::vector<int32_t>{2, 4, 9, 12, 20}));
  EXPECT_EQ(listed(free.take(3)), (std::vector<int32_t>{2, 4, 9}));
  EXPECT_EQ(listed(free.take(0)), std::vector<int32_t>());
  EXPECT_EQ(listed(free.take(2)), (std::vector<int32_t>{12, 20}));
  EXPECT_TRUE(free.empty());
  free.add(std::vector<int32_t>{1});
  free.clear();
  EXPECT_EQ(free.count(), 0);
}

}  // namespace
}  // namespace hctr::test
