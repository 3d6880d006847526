// Rows of a file move together where there is room for it, and are read as they were written.
#include <gtest/gtest.h>

#include <cstring>

#include "embedding/disk_rows.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

constexpr int64_t kMovedRecord = 4096;  // 64 in a segment of the file

struct MovedRows {
  std::vector<DiskRows::Row> rows;
  std::vector<std::byte> records;
};

/// Each record holds its key.
MovedRows rows_from(int64_t first, int64_t count) {
  MovedRows made{.rows = {}, .records = std::vector<std::byte>(static_cast<size_t>(count * kMovedRecord))};
  for (int64_t i = 0; i < count; ++i) {
    made.rows.push_back({.key = first + i});
    const int64_t key = first + i;
    std::memcpy(made.records.data() + i * kMovedRecord, &key, sizeof key);
  }
  return made;
}

/// The file has all that the budget allows but `room` records, and five sixths of it are free, all over it.
TEST(DiskRowsMoves, RowsMoveTogetherAsFarAsThereIsRoom) {
  const TemporaryFolder folder;
  for (const auto& [room, moves] : {std::pair(int64_t{10}, false), {64, true}, {200, true}}) {
    SCOPED_TRACE(room);
    RowMemory budget(Device{}, {.disk_folder = folder.path().string(), .disk = (6000 + room) * kMovedRecord});
    DiskRows disk(budget, "table", kMovedRecord);
    MovedRows all = rows_from(0, 6000);
    disk.add(all.rows, all.records.data());
    std::vector<DiskRows::Row> gone;
    for (int64_t key = 0; key < 6000; ++key)
      if (key % 6 != 0) gone.push_back({.key = key});
    disk.remove(gone);
    MovedRows more = rows_from(10000, 500);
    disk.add(more.rows, more.records.data());
    EXPECT_EQ(disk.traffic().rows_moved > 0, moves);
    EXPECT_LE(budget.disk_bytes(), budget.limits().disk);
    const std::vector<DiskRows::Row> there = disk.sorted_rows();
    ASSERT_EQ(there.size(), 1500u);
    std::vector<std::byte> records(there.size() * kMovedRecord);
    disk.read(there, records.data());
    for (size_t i = 0; i < there.size(); ++i) {
      int64_t key = -1;
      std::memcpy(&key, records.data() + i * kMovedRecord, sizeof key);
      ASSERT_EQ(key, there[i].key);
    }
  }
}

}  // namespace
}  // namespace hctr::test
