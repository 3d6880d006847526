// Two tables with rows on disk share a budget, while a checkpoint reads the rows of one or both tables.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "engine/disk/disk_rows.h"
#include "engine/disk/disk_snapshot.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "unit/engine/table/plain_table.h"
#include "unit/formats/model/saved_table.h"

namespace hctr::test {
namespace {

constexpr int64_t kSharedRecord = 4096, kSharedRows = 512;

/// A table whose records contain their keys.
struct SharingTable {
  SharingTable(RowMemory& budget, std::string label) : disk(budget, std::move(label), kSharedRecord) {}
  void add(int64_t first, int64_t count) {
    std::vector<DiskRows::Row> rows;
    std::vector<std::byte> records(static_cast<size_t>(count * kSharedRecord));
    for (int64_t key = first; key < first + count; ++key) {
      rows.push_back({.key = key});
      std::memcpy(records.data() + (key - first) * kSharedRecord, &key, sizeof key);
    }
    disk.add(rows, records.data());
  }
  void remove(int64_t first, int64_t count) {
    std::vector<DiskRows::Row> rows;
    for (int64_t key = first; key < first + count; ++key) rows.push_back({.key = key});
    disk.remove(rows);
  }
  void expect_whole(int64_t count) {
    const std::vector<DiskRows::Row> rows = disk.sorted_rows();
    ASSERT_EQ(static_cast<int64_t>(rows.size()), count);
    std::vector<std::byte> records(rows.size() * kSharedRecord);
    disk.read(rows, records.data());
    for (size_t i = 0; i < rows.size(); ++i) {
      int64_t key = -1;
      std::memcpy(&key, records.data() + i * kSharedRecord, sizeof key);
      ASSERT_EQ(key, rows[i].key);
    }
  }
  std::shared_ptr<DiskSnapshot> snapshot(bool never_waits, int64_t memory = INT64_MAX) {
    return disk.snapshot(memory, never_waits, why_not);
  }
  std::string why_not;
  DiskRows disk;
};

RowMemoryLimits shared_limits(const TemporaryFolder& folder, int64_t places, int64_t host = 0) {
  return {
      .host = host, .host_setting = "\"host\"", .disk_folder = folder.path().string(), .disk = places * kSharedRecord};
}

/// A thread that reads a snapshot and releases it, while the caller continues.
class ReadLater {
 public:
  explicit ReadLater(std::shared_ptr<DiskSnapshot> snapshot)
      : use_(snapshot->use()), thread_([snapshot = std::move(snapshot)]() mutable {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          std::vector<std::byte> records(snapshot->rows().size() * kSharedRecord);
          snapshot->read(snapshot->rows(), records.data());
          snapshot.reset();
        }) {}
  ~ReadLater() { thread_.join(); }
  double waited() const { return use_->waited(); }

 private:
  std::shared_ptr<SnapshotUse> use_;
  std::thread thread_;
};

/// Bytes that one table has reserved are not available to the other table. Otherwise two tables that rely on the same
/// bytes could wait for each other, and other ranks for them, until a timeout.
TEST(DiskRowsThatShareABudget, HaveTheBytesThatAreLeftPromisedOnce) {
  const TemporaryFolder folder;
  RowMemory budget(Device{}, shared_limits(folder, 7 * kSharedRows / 2, 1 << 20));
  {
    SharingTable one(budget, "one"), other(budget, "other");
    one.add(0, kSharedRows);
    other.add(0, kSharedRows);
    const int64_t maps = one.disk.map_bytes() + other.disk.map_bytes();
    std::shared_ptr<DiskSnapshot> snapshot = one.snapshot(true);
    ASSERT_TRUE(snapshot) << one.why_not;
    EXPECT_EQ(budget.disk_room(), kSharedRows / 2 * kSharedRecord) << "the rows of the first may all leave once more";
    EXPECT_EQ(budget.host_room(), (1 << 20) - maps - one.disk.snapshot_bytes()) << "its map may grow";
    EXPECT_FALSE(other.snapshot(true));
    EXPECT_NE(
        other.why_not.find(cat(kSharedRows / 2 * kSharedRecord, " of \"disk_limit\" of \"table_memory\" are left")),
        std::string::npos)
        << other.why_not;
    other.add(kSharedRows, kSharedRows / 2);
    EXPECT_EQ(budget.disk_room(), 0);
    one.remove(0, kSharedRows);
    one.add(10000, kSharedRows / 2);
    EXPECT_EQ(budget.disk_room(), 0) << "of what was promised";
    one.add(20000, kSharedRows / 2);
    EXPECT_EQ(snapshot->use()->waited(), 0);
    one.expect_whole(kSharedRows);
    snapshot.reset();
    snapshot = one.snapshot(true);
    EXPECT_TRUE(snapshot) << "its file has room by now: " << one.why_not;
    snapshot.reset();
    other.add(30000, kSharedRows / 2);
    EXPECT_FALSE(one.snapshot(true)) << "the other table has what it would need";
    EXPECT_EQ(budget.disk_bytes(), budget.limits().disk);
    one.expect_whole(kSharedRows);
    other.expect_whole(2 * kSharedRows);
  }
  EXPECT_EQ(budget.disk_room(), budget.limits().disk);
  EXPECT_EQ(budget.host_room(), budget.limits().host);
}

/// Disk space that the snapshot of one table needs cannot be reused. Another table that needs space waits until the
/// snapshot ends, instead of failing.
TEST(DiskRowsThatShareABudget, WaitForTheSnapshotOfAnotherRatherThanFail) {
  for (const bool has_ended : {false, true}) {
    SCOPED_TRACE(has_ended);
    const TemporaryFolder folder;
    RowMemory budget(Device{}, shared_limits(folder, 3 * kSharedRows));
    SharingTable one(budget, "one"), other(budget, "other");
    one.add(0, kSharedRows);
    other.add(0, kSharedRows);
    std::shared_ptr<DiskSnapshot> snapshot = one.snapshot(false);
    ASSERT_TRUE(snapshot) << one.why_not;
    one.remove(0, kSharedRows);
    one.add(10000, kSharedRows);
    EXPECT_EQ(budget.disk_room(), 0);
    if (has_ended) {
      snapshot.reset();
      other.add(20000, kSharedRows / 2);
    } else {
      const ReadLater later(std::move(snapshot));
      other.add(20000, kSharedRows / 2);
      EXPECT_GT(later.waited(), 0);
    }
    one.expect_whole(kSharedRows);
    other.expect_whole(kSharedRows * 3 / 2);
    EXPECT_LE(budget.disk_bytes(), budget.limits().disk);
    other.add(30000, kSharedRows / 2);
    one.expect_whole(kSharedRows);
    const std::string full = message_of(Kind::io, [&] { other.add(40000, 1); });
    EXPECT_NE(full.find(cat("must be at least ", (3 * kSharedRows + 1) * kSharedRecord)), std::string::npos) << full;
    int64_t bytes_of_files = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (fs::read_symlink(entry.path(), gone).string().starts_with(folder.path().string()))
        bytes_of_files += static_cast<int64_t>(fs::file_size(entry.path(), gone));
    }
    EXPECT_LE(bytes_of_files, budget.limits().disk) << "the disk has what is given back";
  }
}

/// The snapshot of one table uses host memory. Another table, whose map grows, waits until the snapshot ends.
TEST(DiskRowsThatShareABudget, WaitForMemoryThatTheSnapshotOfAnotherHas) {
  const TemporaryFolder folder;
  constexpr int64_t kMap = 1024 * static_cast<int64_t>(sizeof(DiskRows::Row));  // bytes of the first map of a table
  RowMemory budget(Device{}, shared_limits(folder, 100 * kSharedRows, 5 * kMap));
  SharingTable one(budget, "one"), other(budget, "other");
  one.add(0, kSharedRows);
  other.add(0, kSharedRows);
  std::shared_ptr<DiskSnapshot> snapshot = one.snapshot(false);
  ASSERT_TRUE(snapshot) << one.why_not;
  EXPECT_LT(budget.host_room(), 5 * kMap / 2);
  budget.take_host(kMap / 2);  // simulates rows in host memory
  const ReadLater later(std::move(snapshot));
  other.add(1000, kSharedRows);
  EXPECT_GT(later.waited(), 0);
  EXPECT_EQ(budget.host_bytes(), 3 * kMap + kMap / 2);
  budget.take_host(-kMap / 2);
  other.expect_whole(2 * kSharedRows);
}

/// Tables train while checkpoints of both tables read rows, with little free disk space.
TEST(TablesThatShareADisk, TrainOnWhileCheckpointsOfBothAreWritten) {
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    const TemporaryFolder folder;
    TableSpec spec = small_spec(128, 3, 32, 32 * 3 * 3);
    spec.optimizer.kind = ops::Optimizer::Kind::adam;
    spec.marks_changes = true;
    spec.ranks = ranks;
    const TableSpec in_memory = spec;
    RowMemoryLimits limits{.device = 0,
                           .move_every = 0,
                           .host_setting = "\"host\"",
                           .disk_folder = folder / "rows",
                           .disk = int64_t{ranks == 1 ? 2500 : 3300} * spec.dim * 3 * 4};
    limits.host = 4 * least_host(kCpu, spec, limits);
    spec.memory = std::make_shared<RowMemory>(kCpu, limits);
    std::vector<std::unique_ptr<TableRig>> plain, split;
    for (int i = 0; i < 2; ++i) {
      plain.push_back(std::make_unique<TableRig>(kCpu, in_memory));
      split.push_back(std::make_unique<TableRig>(kCpu, spec, 1, 2, false));
    }
    std::mt19937_64 random(3);
    const auto steps = [&](int count, int64_t vocabulary) {
      for (int t = 0; t < 2 * count; ++t) {
        const auto i = static_cast<size_t>(t % 2);
        Bags bags = random_bags(spec, spec.samples, 3, vocabulary, random);
        for (auto& slot : bags)
          for (auto& bag : slot)
            for (int64_t& key : bag) key = static_cast<int64_t>(random() % static_cast<uint64_t>(vocabulary));
        const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
        ASSERT_TRUE(split[i]->step(bags, dy) == plain[i]->step(bags, dy)) << t;
        EXPECT_LE(spec.memory->disk_bytes(), limits.disk);
        EXPECT_LE(spec.memory->host_bytes(), limits.host);
      }
    };
    steps(60, 2200);
    int written_later = 0;
    for (const int64_t iteration : {1, 2, 3}) {
      std::vector<std::string> bytes;
      std::vector<std::function<double()>> waits;
      std::vector<std::unique_ptr<TableSavedLater>> later;
      for (size_t i = 0; i < 2; ++i) {
        bytes.push_back(plain[i]->bytes());
        later.push_back(std::make_unique<TableSavedLater>(*split[i], folder / cat(i), iteration, std::nullopt));
        if (later[i]->later().rows.empty()) continue;
        ++written_later;
        waits.push_back(later[i]->later().rows[0].waited);
      }
      std::thread thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        for (const auto& each : later) each->write();
      });
      EXPECT_NO_THROW(steps(12, 2200 + 40 * iteration));
      thread.join();
      for (const auto& waited : waits) EXPECT_TRUE(ranks == 1 || waited() == 0) << "room was promised";
      for (size_t i = 0; i < 2; ++i) {
        const fs::path path = saved_path(folder / cat(i), iteration);
        TableRig loaded(kCpu, in_memory);
        loaded.table->load_state(StateReader(path, read_manifest(path), true, 0, loaded.runtime.compute_stream()));
        EXPECT_TRUE(loaded.bytes() == bytes[i]);
      }
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GE(written_later, ranks == 1 ? 6 : 1);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_GT(split[i]->table->disk_use().rows, 400);
      EXPECT_TRUE(split[i]->bytes() == plain[i]->bytes());
    }
  }
}

}  // namespace
}  // namespace hctr::test
