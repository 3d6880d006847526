// A thread writes rows to their file while other rows are added, read and removed.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <thread>

#include "engine/disk/disk_rows.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

constexpr int64_t kBehindRecord = 4096;

/// A block of evicted rows. Each record contains its key and a version.
struct BehindBlock {
  std::vector<DiskRows::Row> rows;
  std::vector<std::byte> records;

  void put(int64_t key, int64_t version) {
    rows.push_back({.key = key});
    records.resize(records.size() + kBehindRecord, static_cast<std::byte>(version));
    const int64_t values[] = {key, version};
    std::memcpy(records.data() + records.size() - kBehindRecord, values, sizeof values);
  }
};

/// Expects that `disk` has exactly these rows with these versions.
void expect_versions(const DiskRows& disk, const std::map<int64_t, int64_t>& versions) {
  const std::vector<DiskRows::Row> there = disk.sorted_rows();
  ASSERT_EQ(there.size(), versions.size());
  std::vector<std::byte> records(there.size() * kBehindRecord);
  disk.read(there, records.data());
  for (size_t i = 0; i < there.size(); ++i) {
    int64_t values[2];
    std::memcpy(values, records.data() + i * kBehindRecord, sizeof values);
    ASSERT_EQ(values[0], there[i].key);
    ASSERT_EQ(values[1], versions.at(there[i].key)) << "key " << values[0];
  }
}

/// Limits the file size of this process during its lifetime, so that writes beyond the limit fail.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const ::rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  ::rlimit before_{};
  void (*handler_)(int);
};

RowMemoryLimits behind_limits(const TemporaryFolder& folder, int64_t rows) {
  return {.host = int64_t{1} << 30,
          .host_setting = "\"host\"",
          .disk_folder = folder.path().string(),
          .disk = rows * kBehindRecord};
}

/// Readahead runs while rows are evicted, fetched, and evicted again with another version.
TEST(DiskRowsBehind, EveryReadHasTheLastRecordOfItsRow) {
  const TemporaryFolder folder;
  // With little free space (2500), rows are written to scattered free records, and are compacted.
  for (const int64_t room : {2500, 20000}) {
    SCOPED_TRACE(room);
    RowMemory budget(Device{}, behind_limits(folder, room));
    DiskRows disk(budget, "table", kBehindRecord);
    disk.set_room_ahead(100);
    const std::jthread ahead([&](const std::stop_token& done) {
      for (std::mt19937_64 other(8); !done.stop_requested(); std::this_thread::yield()) {
        std::vector<ops::RowOwner> rows;
        for (int i = 0; i < 20; ++i) rows.push_back({static_cast<int64_t>(other() % 3000), 0});
        disk.read_ahead(rows);
      }
    });
    std::map<int64_t, int64_t> versions;
    std::mt19937_64 random(7);
    std::deque<BehindBlock> blocks(4);
    for (int64_t version = 0; version < 150; ++version) {
      BehindBlock& block = blocks[static_cast<size_t>(version) % blocks.size()];
      disk.wait_written(block.records.data());
      block = {};
      std::map<int64_t, int64_t> added;
      for (int i = 0; i < 200; ++i) added[static_cast<int64_t>(random() % 3000)] = version;
      std::erase_if(added, [&](const auto& each) { return versions.contains(each.first); });
      for (const auto& [key, each] : added) block.put(key, each);
      disk.add_behind(block.rows, block.records.data());
      versions.merge(added);
      if (version % 3 == 0) expect_versions(disk, versions);
      if (testing::Test::HasFatalFailure()) return;
      std::vector<DiskRows::Row> gone;
      while (versions.size() > 1000) {
        auto at = versions.lower_bound(static_cast<int64_t>(random() % 3000));
        if (at == versions.end()) at = versions.begin();
        gone.push_back({.key = at->first});
        versions.erase(at);
      }
      disk.remove(gone);
    }
    disk.wait_written();
    EXPECT_FALSE(disk.has_unwritten());
    expect_versions(disk, versions);
    EXPECT_GT(disk.traffic().rows_read_ahead, 100);
    EXPECT_TRUE(room == 2500 || disk.traffic().rows_moved > 0);
  }
}

/// The disk is full, but half of the file is free. The records of two blocks are past the end of the file, where
/// neither block can be written. An earlier long block is still being written.
TEST(DiskRowsBehind, BlocksThatFailTogetherFindTheFreePlacesOfTheFile) {
  const TemporaryFolder folder;
  RowMemory budget(Device{}, behind_limits(folder, 100000));
  DiskRows disk(budget, "table", kBehindRecord);
  std::map<int64_t, int64_t> versions;
  BehindBlock all, slow, first, second;
  int64_t key = 0;
  const auto fill = [&](BehindBlock& block, int64_t rows, int64_t version) {
    for (const int64_t end = key + rows; key < end; ++key) block.put(key, versions[key] = version);
  };
  fill(all, 8192, 1);
  disk.add(all.rows, all.records.data());
  std::vector<DiskRows::Row> gone;
  for (int64_t row = 0; row < 7800; row += 2) {
    gone.push_back({.key = row});
    versions.erase(row);
  }
  disk.remove(gone);
  fill(slow, 4096, 2);
  fill(first, 64, 3);
  fill(second, 64, 4);
  const FileSizeLimit limit((8192 + 4096) * kBehindRecord);
  disk.add_behind(slow.rows, slow.records.data());
  disk.add_behind(first.rows, first.records.data());
  disk.add_behind(second.rows, second.records.data());
  disk.wait_written();
  EXPECT_FALSE(disk.has_unwritten());
  expect_versions(disk, versions);
}

TEST(DiskRowsBehind, RowsThatCannotBeWrittenStayInMemoryAndTheNextOnesAreRefused) {
  const TemporaryFolder folder;
  RowMemory budget(Device{}, behind_limits(folder, 1000));
  DiskRows disk(budget, "table", kBehindRecord);
  std::map<int64_t, int64_t> versions;
  BehindBlock first, second, third;
  for (int64_t key = 0; key < 100; ++key) first.put(key, versions[key] = 1);
  for (int64_t key = 100; key < 200; ++key) second.put(key, versions[key] = 2);
  for (int64_t key = 200; key < 210; ++key) third.put(key, 3);
  const FileSizeLimit limit(150 * kBehindRecord);
  disk.add_behind(first.rows, first.records.data());
  disk.add_behind(second.rows, second.records.data());
  const auto expect_error = [&](const auto& body) {
    const std::string message = message_of(Kind::io, body);
    EXPECT_NE(message.find("moving 100 rows of table to the disk"), std::string::npos) << message;
    EXPECT_NE(message.find("cannot write "), std::string::npos) << message;
    expect_versions(disk, versions);
  };
  expect_error([&] { disk.wait_written(second.records.data()); });
  expect_error([&] { disk.add_behind(third.rows, third.records.data()); });
  expect_error([&] { disk.wait_written(); });
  EXPECT_TRUE(disk.has_unwritten());

  // Removing fetched rows frees records of the file, which unwritten rows then use.
  disk.remove(first.rows);
  for (const DiskRows::Row& row : first.rows) versions.erase(row.key);
  disk.wait_written();
  EXPECT_FALSE(disk.has_unwritten());
  std::fill(second.records.begin(), second.records.end(), std::byte{0});
  expect_versions(disk, versions);
  EXPECT_LE(budget.disk_bytes(), 200 * kBehindRecord);
}

TEST(DiskRowsBehind, OfRowsThatCouldNotBeWrittenOnlyThoseStillThereAreWrittenElsewhere) {
  const TemporaryFolder folder;
  RowMemory budget(Device{}, behind_limits(folder, 1000));
  DiskRows disk(budget, "table", kBehindRecord);
  std::map<int64_t, int64_t> versions;
  BehindBlock first, second;
  for (int64_t key = 0; key < 64; ++key) first.put(key, versions[key] = 1);
  for (int64_t key = 64; key < 128; ++key) second.put(key, versions[key] = 2);
  const FileSizeLimit limit(64 * kBehindRecord);
  disk.add_behind(first.rows, first.records.data());
  disk.add_behind(second.rows, second.records.data());
  std::vector<DiskRows::Row> gone;
  for (int64_t key = 0; key < 128; key += 2) {
    gone.push_back({.key = key});
    versions.erase(key);
  }
  disk.remove(gone);  // removes half of the rows of both blocks
  disk.wait_written();
  EXPECT_FALSE(disk.has_unwritten());
  expect_versions(disk, versions);
}

}  // namespace
}  // namespace hctr::test
