// The selection of rows that --init holds out.
#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "prepare/init/table_pass.h"

namespace hctr {
namespace {

uint64_t row_of(int number) { return hash_with(hash_with(kHoldOutSeed, 0, cat(number)), 1, "x"); }

TEST(HoldOut, RowsWithEqualFeaturesStayOnOneSide) {
  HoldOut rule;
  for (int r = 0; r < 5000; ++r) rule.look_at(row_of(r));
  ASSERT_FALSE(rule.by_number());
  int held_out = 0;
  for (int r = 0; r < 20000; ++r) {
    const bool first = rule.held_out(row_of(r));
    held_out += first;
    EXPECT_EQ(rule.held_out(row_of(r)), first) << r;
  }
  EXPECT_NEAR(held_out, 2000, 200);
}

TEST(HoldOut, RowsOfFewFeaturesAreDrawnByTheirNumber) {
  HoldOut rule;
  for (int r = 0; r < 5000; ++r) rule.look_at(row_of(r % 12));
  ASSERT_TRUE(rule.by_number());
  int held_out[12] = {};
  for (int r = 0; r < 24000; ++r) held_out[r % 12] += rule.held_out(row_of(r % 12));
  for (const int rows : held_out) EXPECT_NEAR(rows, 200, 60);
}

TEST(HoldOut, ColumnsAreToldApart) {
  EXPECT_NE(hash_with(hash_with(kHoldOutSeed, 0, "a"), 1, "b"), hash_with(hash_with(kHoldOutSeed, 0, "b"), 1, "a"));
  EXPECT_NE(hash_with(kHoldOutSeed, 0, "a"), hash_with(kHoldOutSeed, 1, "a"));
}

}  // namespace
}  // namespace hctr
