#include "store/sorted_rows.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

TEST(SortedRows, HaveTheLastRowOfEachKeyInTheOrderOfBytesWithAndWithoutMemory) {
  struct Case {
    int64_t rows, memory;
    int threads;
    size_t ranges;
  };
  // The first case sorts in memory. The second writes a few runs to a file, the last two many small runs.
  for (const Case& one : {Case{3000, int64_t{1} << 20, 1, 1}, Case{500'000, int64_t{64} << 20, 3, 4},
                          Case{500'000, int64_t{6} << 20, 3, 4}, Case{3000, 2000, 2, 1}}) {
    const TemporaryFolder folder;
    ThreadPool threads(one.threads);
    SortedRows sorted(folder.path(), 2, one.memory);
    std::map<uint64_t, std::vector<float>> plain;
    std::mt19937_64 random(5);
    std::vector<int64_t> keys;
    std::vector<float> rows;
    const auto pass = [&] {
      sorted.add(keys, rows.data(), threads);
      keys.clear();
      rows.clear();
    };
    for (int64_t i = 0; i < one.rows; ++i) {
      keys.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(one.rows)) - one.rows / 2);
      rows.insert(rows.end(), {static_cast<float>(i), static_cast<float>(-i)});
      plain[byte_order_of(keys.back())] = {static_cast<float>(i), static_cast<float>(-i)};
      if (keys.size() == 777) pass();
    }
    pass();
    std::vector<SortedRows::Range> ranges = sorted.finish(4, threads);
    EXPECT_EQ(ranges.size(), one.ranges);
    auto wanted = plain.begin();
    for (SortedRows::Range& range : ranges) {
      const auto first = wanted;
      int64_t key = 0;
      for (const float* row = nullptr; range.next(key, row); ++wanted) {
        ASSERT_NE(wanted, plain.end());
        ASSERT_EQ(byte_order_of(key), wanted->first);
        ASSERT_EQ(std::vector<float>(row, row + 2), wanted->second);
      }
      EXPECT_GT(std::distance(first, wanted), std::ssize(plain) / (2 * std::ssize(ranges)))
          << "ranges of similar sizes";
    }
    EXPECT_EQ(wanted, plain.end());
  }
}

TEST(SortedRows, OfNoRowsAreOneEmptyRange) {
  const TemporaryFolder folder;
  ThreadPool threads(2);
  SortedRows sorted(folder.path(), 2, 1000);
  std::vector<SortedRows::Range> ranges = sorted.finish(4, threads);
  ASSERT_EQ(ranges.size(), 1u);
  int64_t key = 0;
  const float* row = nullptr;
  EXPECT_FALSE(ranges[0].next(key, row));
}

}  // namespace
}  // namespace hctr::test
