#include "store/sorted_rows.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

TEST(SortedRows, HasTheLastRowOfEachKeyInTheOrderOfBytesWithAndWithoutMemory) {
  for (const int64_t memory : {int64_t{1} << 20, int64_t{2000}}) {
    const TemporaryFolder folder;
    SortedRows sorted(folder.path(), 2, memory);
    std::map<uint64_t, std::vector<float>> plain;
    std::mt19937_64 random(5);
    for (float i = 0; i < 3000; ++i) {
      const int64_t key = static_cast<int64_t>(random() % 2000) - 1000;
      const std::vector<float> row = {i, -i};
      sorted.add({&key, 1}, row.data());
      plain[byte_order_of(key)] = row;
    }
    sorted.finish();
    int64_t key = 0;
    const float* row = nullptr;
    for (const auto& [order, wanted] : plain) {
      ASSERT_TRUE(sorted.next(key, row));
      ASSERT_EQ(byte_order_of(key), order);
      ASSERT_EQ(std::vector<float>(row, row + 2), wanted);
    }
    EXPECT_FALSE(sorted.next(key, row));
  }
}

}  // namespace
}  // namespace hctr::test
