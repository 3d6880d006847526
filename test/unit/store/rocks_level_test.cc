#include "store/rocks_level.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <random>

#include "core/base/files.h"
#include "hctr/error.h"
#include "hctr/store.h"
#include "store/level_plugins.h"
#include "support/level_rows.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

StoreRocksOptions rocks_in(const fs::path& folder) {
  return {.folder = folder, .cache_bytes = 1 << 20, .reader_threads = 2, .background_threads = 1};
}

/// Expects rows equal to `wanted`, and equal counts by "store verify" and "store stats".
void expect_rocks(const StoreRocksOptions& options, const std::string& space, const LevelRows& wanted) {
  RocksLevel level(options);
  const auto table = level.table(space, 3, 0);
  EXPECT_EQ(level_rows(*table), wanted);
  EXPECT_EQ(table->size(), std::ssize(wanted));
}

class RocksLevels : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      rocks_plugin();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  TemporaryFolder folder_;
};

TEST_F(RocksLevels, HasTheRowsOfTheLastCommitWhenItIsOpenedAgain) {
  const StoreRocksOptions options = rocks_in(folder_ / "db");
  LevelRows plain, committed;
  std::mt19937_64 random(1);
  for (int round = 0; round < 12; ++round) {
    RocksLevel level(options);
    const auto table = level.table("m/t/0", 3, 0);
    ASSERT_EQ(level_rows(*table), committed);
    ASSERT_EQ(table->size(), std::ssize(committed));
    for (float i = 0; i < 300; ++i) {
      const auto key = static_cast<int64_t>(random() % 500) - 250;
      if (round > 0 && random() % 3 == 0) {
        table->remove({&key, 1});
        plain.erase(key);
      } else {
        table->put({&key, 1}, std::vector<float>(3, i).data());
        plain[key] = std::vector<float>(3, i);
      }
    }
    if (round % 4 == 3) {  // ends the round without a commit
      plain = committed;
      continue;
    }
    level.commit(std::to_string(round));
    committed = plain;
    ASSERT_EQ(level_rows(*table), committed);
    EXPECT_EQ(level.note(), std::to_string(round));
    if (round == 6) level.compact();
    EXPECT_EQ(level.verify(), std::ssize(committed));
  }
  expect_rocks(options, "m/t/0", committed);
}

TEST_F(RocksLevels, ChangesAreSeenAtTheCommitOrNever) {
  const StoreRocksOptions options = rocks_in(folder_ / "db");
  RocksLevel level(options);
  const auto table = level.table("m/t/0", 2, 0);
  const std::vector<int64_t> keys = {1, 2};
  table->put(keys, std::vector<float>{1, 1, 2, 2}.data());
  level.commit("a");
  const LevelRows before = level_rows(*table);
  const auto change = [&] {
    table->put({keys.data(), 1}, std::vector<float>{5, 5}.data());
    table->remove({keys.data() + 1, 1});
  };
  change();
  EXPECT_EQ(level_rows(*table), before);
  level.table("m/u/1", 2, 0)->put(keys, std::vector<float>(4).data());
  level.roll_back();
  level.commit("b");
  EXPECT_EQ(level_rows(*table), before);
  EXPECT_EQ(level.namespaces(), std::vector<std::string>{"m/t/0"});
  change();
  level.commit("c");
  EXPECT_EQ(level_rows(*table), (LevelRows{{1, {5, 5}}}));
}

TEST_F(RocksLevels, CommitsLeaveOutWhatIsHeldAlsoAfterACrash) {
  const StoreRocksOptions options = rocks_in(folder_ / "db");
  const int64_t keys[2] = {1, 2};
  const auto put = [&](LevelTable& table, float value) { table.put(keys, std::vector<float>(2, value).data()); };
  {
    RocksLevel level(options);
    put(*level.table("held", 1, 0), 1);
    level.commit("first");
    const auto held = level.table("held", 1, 0), fresh = level.table("fresh", 1, 0), other = level.table("other", 1, 0);
    level.hold("held");
    level.hold("fresh");
    put(*held, 5);
    held->remove({keys, 1});
    put(*fresh, 5);
    for (int commit = 0; commit < 3; ++commit) {
      put(*other, static_cast<float>(commit));
      level.commit("others");
      EXPECT_EQ(level_rows(*held), (LevelRows{{1, {1}}, {2, {1}}}));
    }
  }
  {
    RocksLevel level(options);
    EXPECT_EQ(level.namespaces(), (std::vector<std::string>{"held", "other"}));
    EXPECT_EQ(level.table("held", 1, 0)->size(), 2);
    EXPECT_EQ(level_rows(*level.table("held", 1, 0)), (LevelRows{{1, {1}}, {2, {1}}}));
    EXPECT_EQ(level_rows(*level.table("other", 1, 0)), (LevelRows{{1, {2}}, {2, {2}}}));
    level.hold("held");
    put(*level.table("held", 1, 0), 6);
    level.commit("others");
    level.release("held");
    level.commit("all");
  }
  RocksLevel level(options);
  EXPECT_EQ(level_rows(*level.table("held", 1, 0)), (LevelRows{{1, {6}}, {2, {6}}}));
}

/// In commit n all keys of both tables get row n, except every seventh key, which is removed. Every fifth commit
/// creates a new table and drops the previous one.
void change_for_ever(const StoreRocksOptions& options, int committed) {
  RocksLevel level(options);
  const auto a = level.table("m/a/0", 5, 0), b = level.table("m/b/0", 5, 0);
  for (int64_t commit = level.note().empty() ? 1 : std::stoll(level.note()) + 1;; ++commit) {
    const std::vector<float> row(5, static_cast<float>(commit));
    for (int64_t key = 0; key < 300; ++key)
      for (LevelTable* table : {a.get(), b.get()})
        if ((key + commit) % 7 == 0)
          table->remove({&key, 1});
        else
          table->put({&key, 1}, row.data());
    if (commit % 5 == 0) {
      for (const std::string& space : level.namespaces())
        if (space.starts_with("m/c/")) level.drop(space);
      const auto c = level.table("m/c/" + std::to_string(commit), 5, 0);
      for (int64_t key = 0; key < 100; ++key) c->put({&key, 1}, row.data());
    }
    level.commit(std::to_string(commit));
    if (::write(committed, "c", 1) != 1) return;
  }
}

void expect_whole_commit(const StoreRocksOptions& options) {
  RocksLevel level(options);
  if (level.note().empty()) return;
  const int64_t commit = std::stoll(level.note());
  for (const char* name : {"m/a/0", "m/b/0"}) {
    const auto table = level.table(name, 5, 0);
    const LevelRows rows = level_rows(*table);
    ASSERT_EQ(table->size(), std::ssize(rows));
    for (int64_t key = 0; key < 300; ++key) {
      ASSERT_EQ(rows.contains(key), (key + commit) % 7 != 0) << commit << " " << key;
      if (rows.contains(key)) {
        ASSERT_EQ(rows.at(key), std::vector<float>(5, static_cast<float>(commit)));
      }
    }
  }
  int tables = 0;
  for (const std::string& space : level.namespaces()) {
    if (!space.starts_with("m/c/")) continue;
    ++tables;
    EXPECT_EQ(space, "m/c/" + std::to_string(commit / 5 * 5));
    EXPECT_EQ(level.table(space, 5, 0)->size(), 100);
  }
  EXPECT_EQ(tables, commit >= 5);
}

TEST_F(RocksLevels, ChildOfTheKillsWrites) {
  if (const char* const folder = std::getenv("HCTR_TEST_WRITES"))
    change_for_ever(rocks_in(folder), std::atoi(std::getenv("HCTR_TEST_WRITES_TO")));
}

TEST_F(RocksLevels, AProcessKilledAtAnyTimeLeavesWholeCommits) {
  const char* const more = std::getenv("HCTR_TEST_KILLS");  // set by test/trials/kill_rocksdb.sh
  const int kills = more ? std::atoi(more) : 8;
  const StoreRocksOptions options = rocks_in(folder_ / "db");
  std::mt19937 random(3);
  for (int number = 0; number < kills; ++number) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    // The writer runs in a new program, because threads of RocksDB do not survive fork().
    const std::string folder = options.folder.string(), descriptor = std::to_string(pipe[1]);
    // with gtest's shard variables, the child could skip its test
    for (const char* share : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) unsetenv(share);
    setenv("HCTR_TEST_WRITES", folder.c_str(), 1);
    setenv("HCTR_TEST_WRITES_TO", descriptor.c_str(), 1);
    const pid_t child = fork();
    if (child == 0) {
      alarm(100);
      execl("/proc/self/exe", "unit_tests", "--gtest_filter=RocksLevels.ChildOfTheKillsWrites", nullptr);
      _exit(1);
    }
    unsetenv("HCTR_TEST_WRITES");
    ::close(pipe[1]);
    char committed = 0;
    for (uint32_t commits = 1 + random() % 4; commits > 0 && ::read(pipe[0], &committed, 1) == 1;) --commits;
    usleep(random() % 8000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    ::close(pipe[0]);
    EXPECT_EQ(committed, 'c');
    ASSERT_NO_FATAL_FAILURE(expect_whole_commit(options));
  }
  {
    RocksLevel level(options);  // the level remains writable
    const int64_t key = 1;
    const auto table = level.table("m/a/0", 5, 0);
    table->put({&key, 1}, std::vector<float>(5, 9).data());
    level.commit("9");
    EXPECT_EQ(level_rows(*table).at(1)[4], 9);
  }
}

TEST_F(RocksLevels, ReadersBesideAnUpdaterSeeItsCommits) {
  const StoreRocksOptions options = rocks_in(folder_ / "db");
  RocksLevel updater(options);
  const auto table = updater.table("m/t/0", 1, 0);
  const int64_t key = 7;
  const auto commit = [&](float value) {
    table->put({&key, 1}, &value);
    updater.commit(std::to_string(value));
  };
  commit(1);
  StoreRocksOptions reading = options;
  reading.opening = StoreRocksOptions::Opening::read_only;
  RocksLevel frozen(reading);
  reading.opening = StoreRocksOptions::Opening::follow;
  reading.own_folder = folder_ / "reader";
  RocksLevel follower(reading);
  commit(2);
  EXPECT_EQ(level_rows(*frozen.table("m/t/0", 1, 0)), (LevelRows{{7, {1}}}));
  EXPECT_FALSE(frozen.refresh());
  EXPECT_TRUE(follower.refresh());
  EXPECT_EQ(level_rows(*follower.table("m/t/0", 1, 0)), (LevelRows{{7, {2}}}));
  EXPECT_FALSE(follower.refresh());
  const float three = 3;
  updater.table("m/u/1", 1, 0)->put({&key, 1}, &three);  // the follower has not opened this column family yet
  commit(4);
  EXPECT_TRUE(follower.refresh());
  EXPECT_EQ(level_rows(*follower.table("m/u/1", 1, 0)), (LevelRows{{7, {3}}}));
  EXPECT_EQ(level_rows(*follower.table("m/t/0", 1, 0)), (LevelRows{{7, {4}}}));
  EXPECT_EQ(follower.table("m/u/1", 1, 0)->size(), 1);
  EXPECT_NE(message_of(Kind::usage, [&] { follower.table("m/v/2", 1, 0); }).find("open read-only"), std::string::npos);
  EXPECT_NE(message_of(Kind::io, [&] { RocksLevel second(options); }).find("lock"), std::string::npos);
}

TEST_F(RocksLevels, AViewOfAFollowerSeesUpdatesAlsoAfterNewTables) {
  StoreLevelOptions level{.kind = StoreLevelOptions::Kind::rocksdb, .rocksdb = rocks_in(folder_ / "db")};
  Store updater(StoreOptions{.levels = {level}});
  const int64_t key = 7;
  const auto load = [&](const std::string& model, const std::string& version, float value) {
    const auto rows = [&](const StoreRowSink& sink) { sink({}, {&key, 1}, {&value, 1}); };
    updater.load({.name = model, .version = version, .tables = {{.name = "t", .dim = 1, .rows = rows}}});
  };
  const auto update = [&](int64_t iteration, float value) {
    const StoreTableUpdate one{.table = "t", .keys = {&key, 1}, .rows = &value};
    updater.apply("m", iteration, {&one, 1});
  };
  load("m", "1", 1);
  level.rocksdb.opening = StoreRocksOptions::Opening::follow;
  level.rocksdb.own_folder = folder_ / "reader";
  Store follower(StoreOptions{.levels = {level}});
  const StoreView view = follower.view("m");
  const auto row = [&] {
    float value = 0;
    view.get(0, {&key, 1}, &value);
    return value;
  };
  EXPECT_EQ(row(), 1);
  for (int round = 0; round < 3; ++round) {  // the follower opens the database again in each round
    load("other", std::to_string(round), 9);
    update(2 * round + 1, 2.0f + static_cast<float>(2 * round));
    EXPECT_TRUE(follower.refresh());
    EXPECT_EQ(row(), 2.0f + static_cast<float>(2 * round));
    update(2 * round + 2, 3.0f + static_cast<float>(2 * round));
    EXPECT_TRUE(follower.refresh());
    EXPECT_EQ(row(), 3.0f + static_cast<float>(2 * round));
  }
  EXPECT_EQ(follower.tables().front().asked, 7);
}

/// Writes a column family in the format of HugeCTR's parameter server: keys of 8 or 4 bytes, and float values.
void write_as_hugectr(const fs::path& folder, const std::string& column, const LevelRows& rows, int key_bytes) {
  const std::string path = folder.string();
  RocksDatabase* database = nullptr;
  ASSERT_EQ(rocks_plugin().open({.path = path.c_str(), .own_path = "", .opening = RocksOpening::update}, &database),
            nullptr);
  const std::unique_ptr<RocksDatabase> owner(database);
  RocksColumn* to = nullptr;
  ASSERT_EQ(database->column(column.c_str(), true, &to), nullptr);
  const std::unique_ptr<RocksColumn> column_owner(to);
  for (const auto& [key, row] : rows) {
    const RocksChange change{to, &key, key_bytes, row.data(), static_cast<int64_t>(row.size() * sizeof(float))};
    ASSERT_EQ(database->write(&change, 1), nullptr);
  }
}

TEST_F(RocksLevels, ReadsAndWritesColumnFamiliesOfTheOriginal) {
  StoreRocksOptions options = rocks_in(folder_ / "db");
  options.names = StoreNames::hugectr;
  LevelRows rows = {{1, {1, 2}}, {-5, {3, 4}}, {int64_t{1} << 40, {5, 6}}};
  write_as_hugectr(options.folder, "hps_et.wdl.deep", rows, 8);
  for (int open = 0; open < 2; ++open) {
    RocksLevel level(options);
    const auto table = open == 0 ? level.adopt("wdl/deep/0", 2) : level.table("wdl/deep/0", 2, 0);
    EXPECT_EQ(level_rows(*table), rows);
    EXPECT_EQ(table->size(), std::ssize(rows));
    const int64_t key = 100 + open;
    table->put({&key, 1}, std::vector<float>{7, 8}.data());
    rows[key] = {7, 8};
    level.commit("n");
    EXPECT_EQ(table->size(), std::ssize(rows));
    if (open == 0) {  // adopted tables have one version, and foreign rows are not replaced
      EXPECT_NE(message_of(Kind::config, [&] { level.table("wdl/deep/1", 2, 0); }).find("can have only one version"),
                std::string::npos);
      EXPECT_NE(message_of(Kind::config, [&] { level.adopt("wdl/wide/1", 2); }).find("no column family"),
                std::string::npos);
    } else {
      level.drop("wdl/deep/0");
      level.commit("");
      EXPECT_EQ(level_rows(*level.adopt("wdl/deep/1", 2)), rows);
    }
  }
  // HugeCTR continues to write to the adopted column family
  write_as_hugectr(options.folder, "hps_et.wdl.deep", {{9, {9, 9}}}, 8);
  rows[9] = {9, 9};
  RocksLevel level(options);
  EXPECT_EQ(level_rows(*level.adopt("wdl/deep/3", 2)), rows);
  EXPECT_NE(message_of(Kind::config, [&] { level.table("wdl/slots/1/2", 2, 0); }).find("slot and key"),
            std::string::npos);
}

TEST_F(RocksLevels, KeysOf32BitsAreNotCut) {
  StoreRocksOptions options = rocks_in(folder_ / "db");
  options.names = StoreNames::hugectr;
  options.key_bytes = 4;
  const LevelRows rows = {{1, {1}}, {0xFFFFFFFF, {2}}};
  write_as_hugectr(options.folder, "hps_et.m.t", rows, 4);
  RocksLevel level(options);
  const auto table = level.adopt("m/t/0", 1);
  EXPECT_EQ(level_rows(*table), rows);
  const std::vector<int64_t> keys = {(int64_t{1} << 32) + 1, 1, -1};
  std::vector<float> got(3);
  std::vector<uint8_t> found(3);
  EXPECT_EQ(table->get({keys}, got.data(), 1, found.data()), 1);
  EXPECT_EQ(found, (std::vector<uint8_t>{0, 1, 0}));
  EXPECT_NE(message_of(Kind::data, [&] { table->put({keys.data(), 1}, got.data()); }).find("key 4294967297"),
            std::string::npos);
}

TEST_F(RocksLevels, ARowOfAnotherSizeIsAnErrorThatNamesItsKey) {
  StoreRocksOptions options = rocks_in(folder_ / "db");
  options.names = StoreNames::hugectr;
  write_as_hugectr(options.folder, "hps_et.m.t", {{5, {1, 2}}}, 8);
  RocksLevel level(options);
  const auto table = level.adopt("m/t/0", 3);
  const int64_t key = 5;
  std::vector<float> row(3);
  uint8_t found = 0;
  EXPECT_NE(message_of(Kind::data, [&] { table->get({{&key, 1}}, row.data(), 3, &found); })
                .find("the row of key 5 has 8 bytes, not 12"),
            std::string::npos);
}

}  // namespace
}  // namespace hctr::test
