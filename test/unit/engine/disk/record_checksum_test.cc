#include "engine/disk/record_checksum.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hctr::test {
namespace {

/// The checksum detects a changed bit, a changed run of bits, swapped words, and another key or slot. Record sizes are
/// multiples of the word size, or differ slightly from a multiple.
TEST(RecordChecksum, DiffersForEveryChangedBitKeyAndSlot) {
  std::mt19937_64 random(1);
  for (const size_t bytes : {size_t{4}, size_t{8}, size_t{23}, size_t{24}, size_t{25}, size_t{49}, size_t{96}}) {
    std::vector<std::byte> record(bytes);
    for (std::byte& byte : record) byte = static_cast<std::byte>(random());
    const uint32_t sum = record_checksum(7, 3, record);
    EXPECT_EQ(record_checksum(7, 3, record), sum);
    EXPECT_NE(record_checksum(8, 3, record), sum);
    EXPECT_NE(record_checksum(7, 4, record), sum);
    for (size_t bit = 0; bit < 8 * bytes; ++bit) {
      record[bit / 8] ^= std::byte{1} << (bit % 8);
      ASSERT_NE(record_checksum(7, 3, record), sum) << "bit " << bit << " of " << bytes << " bytes";
      record[bit / 8] ^= std::byte{1} << (bit % 8);
    }
    for (size_t first = 0; first + 4 <= bytes; ++first) {
      for (size_t i = 0; i < 4; ++i) record[first + i] ^= std::byte{0xff};
      ASSERT_NE(record_checksum(7, 3, record), sum);
      for (size_t i = 0; i < 4; ++i) record[first + i] ^= std::byte{0xff};
    }
    for (size_t first = 0; first + 16 <= bytes; first += 8) {
      std::swap_ranges(record.begin() + static_cast<int64_t>(first), record.begin() + static_cast<int64_t>(first) + 8,
                       record.begin() + static_cast<int64_t>(first) + 8);
      ASSERT_NE(record_checksum(7, 3, record), sum);
      std::swap_ranges(record.begin() + static_cast<int64_t>(first), record.begin() + static_cast<int64_t>(first) + 8,
                       record.begin() + static_cast<int64_t>(first) + 8);
    }
  }
}

}  // namespace
}  // namespace hctr::test
