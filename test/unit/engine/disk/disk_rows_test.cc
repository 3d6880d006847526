#include "engine/disk/disk_rows.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include "core/base/expect.h"
#include "engine/disk/disk_snapshot.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

/// Drops the page cache of the unlinked files that this process has open in a folder.
void drop_cache(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (!fs::read_symlink(entry.path(), gone).string().starts_with(folder.string())) continue;
    const int file = std::stoi(entry.path().filename().string());
    ::fdatasync(file);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  }
}

/// Whether the system counts bytes read from disk and drops pages on request. Memory file systems do not.
bool counts_bytes_from_disk(const fs::path& folder) {
  ScratchFile file(folder);
  std::vector<std::byte> bytes(1 << 16);
  file.write(0, bytes);
  drop_cache(folder);
  const int64_t before = ScratchFile::bytes_from_disk();
  file.read(0, bytes);
  return ScratchFile::bytes_from_disk() - before >= int64_t{1} << 16;
}

/// The inputs of LookAheadDepth: bytes read ahead from disk, and bytes read again because the page cache dropped them.
TEST(DiskRowsTest, CountsWhatIsReadAheadAndWhatIsReadAgain) {
  const TemporaryFolder folder;
  if (!counts_bytes_from_disk(folder.path())) GTEST_SKIP() << "nothing counts what comes from a disk here";
  constexpr int64_t kRecord = 4096, kRows = 64, kAll = kRows * kRecord;
  RowMemory memory(Device{}, {.host = int64_t{1} << 30,
                              .host_setting = "\"host\"",
                              .disk_folder = folder.path().string(),
                              .disk = int64_t{1} << 30});
  DiskRows disk(memory, "rows", kRecord);
  std::vector<DiskRows::Row> rows(kRows);
  std::vector<ops::RowOwner> owners;
  for (int64_t i = 0; i < kRows; ++i) {
    rows[static_cast<size_t>(i)].key = 7 * i;
    owners.push_back({7 * i, 0});
  }
  std::vector<std::byte> records(kAll), read(kAll);
  for (size_t i = 0; i < records.size(); ++i) records[i] = static_cast<std::byte>(i % 251);
  disk.add(rows, records.data());

  drop_cache(folder.path());
  disk.read(rows, read.data());
  EXPECT_EQ(disk.fetched().again, 0) << "nobody had asked for them";

  drop_cache(folder.path());
  disk.read_ahead(owners);
  EXPECT_GE(disk.fetched().ahead, kAll);
  disk.read(rows, read.data());
  EXPECT_EQ(disk.fetched().again, 0) << "they were there, or on their way";
  EXPECT_TRUE(read == records);

  const int64_t ahead = disk.fetched().ahead;
  disk.read_ahead(owners);
  EXPECT_EQ(disk.fetched().ahead, ahead) << "they are in the cache";
  drop_cache(folder.path());
  disk.read(rows, read.data());
  EXPECT_GE(disk.fetched().again, kAll);
  EXPECT_TRUE(read == records);

  const int64_t again = disk.fetched().again;
  drop_cache(folder.path());
  disk.read(rows, read.data());
  EXPECT_EQ(disk.fetched().again, again) << "these were asked for once, not twice";
}

constexpr int64_t kMovedRecord = 4096;  // 64 records per segment of the file

struct MovedRows {
  std::vector<DiskRows::Row> rows;
  std::vector<std::byte> records;
};

/// Rows whose records contain their keys.
MovedRows rows_from(int64_t first, int64_t count) {
  MovedRows made{.rows = {}, .records = std::vector<std::byte>(static_cast<size_t>(count * kMovedRecord))};
  for (int64_t i = 0; i < count; ++i) {
    made.rows.push_back({.key = first + i});
    const int64_t key = first + i;
    std::memcpy(made.records.data() + i * kMovedRecord, &key, sizeof key);
  }
  return made;
}

/// The file fills the budget except for `room` records. Five sixths of the file's records are free, at scattered
/// places.
TEST(DiskRows, MoveTogetherAsFarAsThereIsRoomAndAreReadAsTheyWereWritten) {
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

/// The file cannot grow, as on a full disk, although the budget would allow it.
TEST(DiskRows, WaitForASnapshotWhereTheDiskHasNoOtherRoom) {
  constexpr int64_t kRows = 512;
  const TemporaryFolder folder;
  RowMemory budget(Device{}, {.disk_folder = folder.path().string(), .disk = int64_t{1} << 30});
  DiskRows disk(budget, "table", kMovedRecord);
  MovedRows all = rows_from(0, kRows), more = rows_from(10000, kRows);
  disk.add(all.rows, all.records.data());
  std::string why_not;
  std::shared_ptr<DiskSnapshot> snapshot = disk.snapshot(INT64_MAX, true, why_not);
  ASSERT_TRUE(snapshot) << why_not;
  EXPECT_FALSE(disk.snapshot(INT64_MAX, false, why_not)) << "one at a time";
  EXPECT_GT(disk.snapshot_bytes(), kRows * 36);
  disk.remove(all.rows);
  bool equal = false;
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::vector<std::byte> records(all.records.size());
    snapshot->read(snapshot->rows(), records.data());
    equal = records == all.records;
    snapshot.reset();
  });
  const std::shared_ptr<SnapshotUse> use = snapshot->use();
  void (*const before)(int) = std::signal(SIGXFSZ, SIG_IGN);
  ::rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const ::rlimit full{static_cast<::rlim_t>(kRows * kMovedRecord), limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &full);
  EXPECT_NO_THROW(disk.add(more.rows, more.records.data()));
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, before);
  reader.join();
  EXPECT_TRUE(equal);
  EXPECT_GT(use->waited(), 0);
  EXPECT_EQ(disk.snapshot_bytes(), 0);
  std::vector<std::byte> records(more.records.size());
  disk.read(more.rows, records.data());
  EXPECT_TRUE(records == more.records);
}

/// Compares random additions and removals with a plain map. The host budget is too small for the map of the rows.
TEST(DiskRows, GoOnWithTheirMapInAFileWhereTheHostHasNoRoomForIt) {
  // the budget holds a map of 1024 entries, but not a second map of 2048
  constexpr int64_t kHost = 100 << 10, kRound = 400;
  const TemporaryFolder folder;
  RowMemory budget(
      Device{},
      {.host = kHost, .host_setting = "\"host\"", .disk_folder = folder.path().string(), .disk = int64_t{1} << 30});
  {
    DiskRows disk(budget, "table", kMovedRecord);
    std::map<int64_t, std::vector<std::byte>> expected;
    for (int64_t round = 0; round < 20; ++round) {
      MovedRows more = rows_from(round * kRound, kRound);
      disk.add(more.rows, more.records.data());
      for (size_t i = 0; i < more.rows.size(); ++i) {
        const auto first = more.records.begin() + static_cast<std::ptrdiff_t>(i * kMovedRecord);
        expected[more.rows[i].key].assign(first, first + kMovedRecord);
      }
      std::vector<DiskRows::Row> gone;
      for (int64_t key = round; key < (round + 1) * kRound; key += 7)
        if (const DiskRows::Row* row = disk.find(key, 0)) gone.push_back(*row);
      disk.remove(gone);
      for (const DiskRows::Row& row : gone) expected.erase(row.key);
      ASSERT_EQ(disk.rows(), static_cast<int64_t>(expected.size()));
      ASSERT_LE(budget.host_bytes(), kHost);
      std::vector<DiskRows::Row> all = disk.sorted_rows();
      std::vector<std::byte> records(all.size() * kMovedRecord);
      disk.read(all, records.data());
      for (size_t i = 0; i < all.size(); ++i) {
        const std::vector<std::byte>& record = expected.at(all[i].key);
        ASSERT_TRUE(std::equal(record.begin(), record.end(), records.data() + i * kMovedRecord)) << all[i].key;
      }
    }
    EXPECT_TRUE(disk.map_on_disk());
    EXPECT_EQ(disk.map_bytes(), 0);
    EXPECT_GE(budget.disk_bytes(), disk.rows() * kMovedRecord + disk.map_bytes_on_disk());
    EXPECT_EQ(budget.host_bytes(), 0);
  }
  EXPECT_EQ(budget.disk_bytes(), 0);
  EXPECT_EQ(budget.host_bytes(), 0);
}

TEST(DiskRows, SayWhatTheDiskNeedsWhereItHasNoRoomForTheirMapEither) {
  constexpr int64_t kRows = 800;
  const TemporaryFolder folder;
  RowMemory budget(Device{}, {.host = 40 << 10,
                              .host_setting = "\"host\" of \"table_memory\"",
                              .disk_folder = folder.path().string(),
                              .disk = kRows * kMovedRecord + 1000});
  DiskRows disk(budget, "table", kMovedRecord);
  MovedRows rows = rows_from(0, kRows);
  try {
    disk.add(rows.rows, rows.records.data());
    FAIL() << "the map and the records take more than the limit";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::io);
    EXPECT_NE(std::string(error.what()).find(cat("must be at least ", kRows * kMovedRecord + 2048 * 32)),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(disk.rows(), 0);
  EXPECT_FALSE(disk.map_on_disk());
}

}  // namespace
}  // namespace hctr::test
