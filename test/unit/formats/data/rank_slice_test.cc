// Selects the rows of a set for one rank, in file order and shuffled.
#include "formats/data/rank_slice.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "formats/reader/shuffled_slice.h"

namespace hctr::data_test {
namespace {

TEST(ShuffledSlice, APassWithMoreRowsThanAreKnownIsNoticed) {
  ShuffledSlice slice({.batch = 10, .begin = 0, .end = 5}, 4, 1, {}, 9);
  std::vector<RowSpan> spans;
  EXPECT_TRUE(slice.find(0, 7, spans));
  EXPECT_TRUE(slice.find(0, 2, spans));
  EXPECT_TRUE(slice.find(1, 9, spans));
  EXPECT_FALSE(slice.find(1, 1, spans));
}

TEST(RankSlice, FindsTheRowsThatItCounts) {
  for (const RankSlice share : {RankSlice{10, 0, 5}, RankSlice{10, 5, 10}, RankSlice{7, 2, 4}, RankSlice{1, 0, 0},
                                RankSlice{1, 0, 1}, RankSlice{9, 3, 6}})
    for (int64_t first = -25; first < 30; ++first)
      for (const int64_t count : {0, 1, 5, 40}) {
        std::vector<RowSpan> spans;
        share.find(first, count, spans);
        std::vector<int64_t> found, expected;
        for (const RowSpan& span : spans)
          for (int64_t row = span.begin; row < span.end; ++row) found.push_back(row);
        for (int64_t row = 0; row < count; ++row)
          if (first + row >= 0 && (first + row) % share.batch >= share.begin && (first + row) % share.batch < share.end)
            expected.push_back(row);
        EXPECT_EQ(found, expected);
        EXPECT_EQ(share.below(first + count) - share.below(first), static_cast<int64_t>(expected.size()));
      }
}

}  // namespace
}  // namespace hctr::data_test
