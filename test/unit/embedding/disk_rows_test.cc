#include "embedding/disk_rows.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

/// Drops from the cache of the system what it has of the files, without names, that this process has open in a folder.
void drop_cache(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (!fs::read_symlink(entry.path(), gone).string().starts_with(folder.string())) continue;
    const int file = std::stoi(entry.path().filename().string());
    ::fdatasync(file);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  }
}

/// Whether the system counts what comes from the disk, and drops what it is asked to: not in memory file systems.
bool counts_bytes_from_disk(const fs::path& folder) {
  ScratchFile file(folder);
  std::vector<std::byte> bytes(1 << 16);
  file.write(0, bytes);
  drop_cache(folder);
  const int64_t before = ScratchFile::bytes_from_disk();
  file.read(0, bytes);
  return ScratchFile::bytes_from_disk() - before >= int64_t{1} << 16;
}

/// What look-ahead goes by: bytes that the disk was read for ahead, and once more for rows that the cache has dropped.
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

}  // namespace
}  // namespace hctr::test
