// Checkpoints of tables with rows on disk, written while the table continues to train.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/files.h"
#include "core/base/platform.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "unit/engine/table/plain_table.h"
#include "unit/formats/model/saved_table.h"

namespace hctr::test {
namespace {

class TableDiskLaterTest : public testing::Test {
 protected:
  TableSpec spec(bool direct = false) const {
    TableSpec spec = small_spec(128, 3, 128, 128 * 3 * 3);
    spec.optimizer.kind = ops::Optimizer::Kind::adam;
    spec.marks_changes = true;
    if (direct) spec.direct = direct_keys({1400, 1400, 1400}, false, {}, 0);
    return spec;
  }
  /// Limits the memory to little more than the rows of a batch, and the disk to `disk` bytes.
  RowMemoryLimits limits(const TableSpec& spec, int64_t disk = int64_t{1} << 30) const {
    RowMemoryLimits limits{
        .device = 0, .move_every = 0, .host_setting = "\"host\"", .disk_folder = folder_ / "rows", .disk = disk};
    limits.host = least_host(kCpu, spec, limits) + (1 << 20);
    return limits;
  }
  std::string file(int64_t iteration, const char* which) const {
    return read_text(saved_path(folder_ / which, iteration) / "rank_0.state", "a checkpoint");
  }
  void step(const std::vector<TableRig*>& rigs, int64_t vocabulary = 4000) {
    const TableSpec& spec = rigs[0]->spec();
    const Bags bags = random_bags(spec, spec.samples, 3, vocabulary, random_);
    const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random_);
    const std::vector<float> y = rigs[0]->step(bags, dy);
    for (size_t i = 1; i < rigs.size(); ++i) ASSERT_TRUE(rigs[i]->step(bags, dy) == y);
  }
  TemporaryFolder folder_;
  std::mt19937_64 random_{3};
};

/// Every row moves several times before the checkpoint reads the rows on disk, or while it reads them.
TEST_F(TableDiskLaterTest, AreThoseThatWereWrittenAtOnce) {
  for (const int which : {0, 1, 2, 3, 4}) {
    if (kSanitized && which == 0) continue;  // with sanitizers, one case per code path is enough
    SCOPED_TRACE(which);
    TableSpec spec = this->spec(which == 1);
    if (which == 2) spec.identity_by_slot = true;
    if (which == 3) spec.policy.expire_after = 8;
    if (which == 4) {
      spec.policy = {.when_full = WhenFull::evict_lru};
      spec.row_limit = 3000;
    }
    TableRig plain(kCpu, spec), split(kCpu, spec, 2, 2, true, DType::f32, limits(spec));
    for (int t = 0; t < 12; ++t) step({&plain, &split});
    for (const int64_t iteration : {1, 2, 3, 4}) {
      if (kSanitized && iteration == 4) continue;  // with sanitizers, one case per code path is enough
      SCOPED_TRACE(iteration);
      const std::optional<int64_t> base = iteration > 1 ? std::optional<int64_t>(1) : std::nullopt;
      save_table(split, folder_ / "now", iteration, base);
      TableSavedLater later(split, folder_ / "later", iteration, base);
      ASSERT_FALSE(later.later().rows.empty()) << later.later().refused;
      const std::string bytes = plain.bytes();
      const int64_t written = split.table->disk_use().written;
      if (iteration % 2 == 1) {
        for (int t = 0; t < 8; ++t) step({&plain, &split});
        later.write();
      } else {
        ASSERT_EQ(later.write_beside({},
                                     [&] {
                                       for (int t = 0; t < 8; ++t) step({&plain, &split});
                                     }),
                  "");
      }
      if (HasFatalFailure()) return;
      EXPECT_GT(split.table->disk_use().written - written, 1000);
      EXPECT_TRUE(file(iteration, "later") == file(iteration, "now"));
      const fs::path path = saved_path(folder_ / "later", iteration);
      TableRig loaded(kCpu, spec);
      loaded.table->load_state(StateReader(path, read_manifest(path), true, 0, loaded.runtime.compute_stream()));
      EXPECT_TRUE(loaded.bytes() == bytes);
      if (HasFailure()) return;
    }
    const int64_t bytes = split.runtime.row_memory().disk_bytes();
    for (int t = 0; t < 8; ++t) step({&plain, &split});
    EXPECT_LE(split.runtime.row_memory().disk_bytes(), bytes * 5 / 4) << "places are used again";
    EXPECT_TRUE(split.bytes() == plain.bytes());
    EXPECT_LE(split.runtime.row_memory().host_bytes(), split.runtime.row_memory().limits().host);
    fs::remove_all(folder_ / "now");
    fs::remove_all(folder_ / "later");
  }
}

/// The rows that the checkpoint needs fill the disk, so a step must wait before it can evict rows.
TEST_F(TableDiskLaterTest, AFullDiskIsWaitedForUntilTheyAreWritten) {
  const TableSpec spec = this->spec();
  constexpr int64_t kDiskPlaces = 1200;
  const int64_t record = spec.dim * 3 * 4;
  TableRig plain(kCpu, spec), split(kCpu, spec, 1, 2, true, DType::f32, limits(spec, kDiskPlaces * record));
  for (int t = 0; t < 12; ++t) step({&plain, &split}, 3000);
  const std::string bytes = plain.bytes();
  TableSavedLater later(split, folder_.path(), 1, {});
  ASSERT_FALSE(later.later().rows.empty()) << later.later().refused;
  const auto waited = later.later().rows.at(0).waited;
  std::atomic<int> steps = 0;
  std::thread thread([&] {
    // Waits until no step has completed for 500 ms: then a step waits for the disk.
    for (int seen = -1; seen != steps;) {
      seen = steps;
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    later.write();
  });
  for (; steps < 12; ++steps) step({&plain, &split}, 3000);
  EXPECT_GT(waited(), 0.05) << split.table->disk_use().rows;
  thread.join();
  EXPECT_TRUE(split.bytes() == plain.bytes());
  EXPECT_LE(split.runtime.row_memory().disk_bytes(), kDiskPlaces * record);
  TableRig loaded(kCpu, spec);
  const fs::path path = saved_path(folder_.path(), 1);
  loaded.table->load_state(StateReader(path, read_manifest(path), true, 0, loaded.runtime.compute_stream()));
  EXPECT_TRUE(loaded.bytes() == bytes);
}

TEST_F(TableDiskLaterTest, WithoutMemoryForThemTheyAreReadAtOnceAndTheReasonIsSaid) {
  for (const bool of_host : {false, true}) {
    SCOPED_TRACE(of_host);
    const TableSpec spec = this->spec(!of_host);
    TableRig split(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
    for (int t = 0; t < 12; ++t) step({&split});
    save_table(split, folder_ / "now", 1, {});
    const int64_t room = split.runtime.row_memory().host_room();
    if (of_host) split.runtime.row_memory().take_host(room - 10000);  // simulates the host memory of other tables
    TableSavedLater later(split, folder_ / "later", 1, {}, of_host ? int64_t{1} << 40 : 100000);
    EXPECT_TRUE(later.later().rows.empty());
    const std::string& refused = later.later().refused;
    EXPECT_NE(refused.find("table 'small' on rank 0: "), std::string::npos) << refused;
    EXPECT_NE(refused.find(of_host ? "10000 are left of \"host\"" : "available for the copy"), std::string::npos)
        << refused;
    if (of_host) split.runtime.row_memory().take_host(10000 - room);
    for (int t = 0; t < 3; ++t) step({&split});
    later.write();
    EXPECT_TRUE(file(1, "later") == file(1, "now"));
  }
}

/// With several ranks a step fails instead of waiting, because other ranks would run into a timeout.
TEST_F(TableDiskLaterTest, OneOfSeveralRanksDoesNotWait) {
  TableSpec spec = this->spec();
  spec.ranks = 2;
  constexpr int64_t kDiskPlaces = 1200;
  TableRig split(kCpu, spec, 1, 2, true, DType::f32, limits(spec, kDiskPlaces * spec.dim * 3 * 4));
  for (int t = 0; t < 24; ++t) step({&split}, 3000);
  const TableSavedLater later(split, folder_.path(), 1, {});
  EXPECT_TRUE(later.later().rows.empty());
  EXPECT_NE(later.later().refused.find("rows evicted while the checkpoint is written may need "), std::string::npos)
      << later.later().refused;
  for (int t = 0; t < 6; ++t) step({&split}, 3000);
}

TEST_F(TableDiskLaterTest, AnAlteredRowIsNamedAndTheTableTrainsOn) {
  const TableSpec spec = this->spec();
  TableRig rig(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
  for (int t = 0; t < 12; ++t) step({&rig});
  TableSavedLater later(rig, folder_.path(), 1, {});
  const int64_t byte = 5 * spec.dim * 3 * 4;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (!fs::read_symlink(entry.path(), error).string().starts_with((folder_ / "rows").string() + "/")) continue;
    const File file(std::fopen(entry.path().c_str(), "r+b"));
    ASSERT_TRUE(file);
    std::fseek(file.get(), byte + 17, SEEK_SET);
    const int was = std::fgetc(file.get());
    std::fseek(file.get(), byte + 17, SEEK_SET);
    std::fputc(was ^ 4, file.get());
  }
  const std::string message = message_of(Kind::io, [&] { later.write(); });
  EXPECT_NE(message.find(" rows of table 'small' on rank 0 from the disk"), std::string::npos) << message;
  EXPECT_NE(message.find(cat(", at byte ", byte, " of a file in '", (folder_ / "rows").string(), "'")),
            std::string::npos)
      << message;
  EXPECT_FALSE(fs::exists(saved_path(folder_.path(), 1) / "rank_0.state"));
  TableSavedLater next(rig, folder_.path(), 2, {});
  EXPECT_FALSE(next.later().rows.empty()) << "the first one holds nothing any more";
}

}  // namespace
}  // namespace hctr::test
