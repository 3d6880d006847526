#include "store/file_level.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>

#include "support/level_rows.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

std::vector<float> row_of_floats(int64_t dim, float value) {
  return std::vector<float>(static_cast<size_t>(dim), value);
}

TEST(FileLevel, CommitsLeaveOutWhatIsHeldAlsoAfterACrash) {
  const TemporaryFolder folder;
  const int64_t keys[2] = {1, 2};
  const auto put = [&](LevelTable& table, float value) { table.put(keys, std::vector<float>(2, value).data()); };
  {
    FileLevel level(folder / "store");
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
    FileLevel level(folder / "store");
    EXPECT_EQ(level.namespaces(), (std::vector<std::string>{"held", "other"}));
    EXPECT_EQ(level_rows(*level.table("held", 1, 0)), (LevelRows{{1, {1}}, {2, {1}}}));
    EXPECT_EQ(level_rows(*level.table("other", 1, 0)), (LevelRows{{1, {2}}, {2, {2}}}));
    level.hold("held");
    put(*level.table("held", 1, 0), 6);
    level.commit("others");
    level.release("held");
    level.commit("all");
  }
  FileLevel level(folder / "store");
  EXPECT_EQ(level_rows(*level.table("held", 1, 0)), (LevelRows{{1, {6}}, {2, {6}}}));
}

TEST(FileLevel, HasTheRowsOfTheLastCommitWhenItIsOpenedAgain) {
  const TemporaryFolder folder;
  LevelRows plain, committed;
  std::mt19937_64 random(1);
  for (int round = 0; round < 40; ++round) {
    FileLevel level(folder / "store");
    const auto table = level.table("t", 3, 0);
    EXPECT_EQ(level_rows(*table), committed);
    if (round > 0) {
      EXPECT_EQ(level.note(), std::to_string(round % 4 == 0 ? round - 2 : round - 1));
    }
    for (float i = 0; i < 300; ++i) {
      const auto key = static_cast<int64_t>(random() % 500);
      if (random() % 3 == 0) {
        table->remove({&key, 1});
        plain.erase(key);
      } else {
        table->put({&key, 1}, row_of_floats(3, i).data());
        plain[key] = row_of_floats(3, i);
      }
    }
    if (round % 4 == 3) {  // ends the round without a commit
      plain = committed;
      continue;
    }
    level.commit(std::to_string(round));
    committed = plain;
    EXPECT_EQ(level_rows(*table), committed);
  }
}

TEST(FileLevel, ChangesAreSeenAtTheCommitOrNever) {
  const TemporaryFolder folder;
  FileLevel level(folder / "store");
  const auto table = level.table("t", 2, 0);
  const std::vector<int64_t> keys = {1, 2};
  table->put(keys, std::vector<float>{1, 1, 2, 2}.data());
  level.commit("a");
  const LevelRows before = level_rows(*table);
  table->put({keys.data(), 1}, row_of_floats(2, 5).data());
  table->remove({keys.data() + 1, 1});
  EXPECT_EQ(level_rows(*table), before);
  level.roll_back();
  level.commit("b");
  EXPECT_EQ(level_rows(*table), before);
  table->put({keys.data(), 1}, row_of_floats(2, 5).data());
  level.commit("c");
  EXPECT_EQ(level_rows(*table), (LevelRows{{1, {5, 5}}, {2, {2, 2}}}));
}

TEST(FileLevel, AProcessKilledAtAnyTimeLeavesWholeCommits) {
  const TemporaryFolder folder;
  constexpr int64_t kKeys = 300, kDim = 5;
  std::mt19937 random(3);
  for (int kill_number = 0; kill_number < 100; ++kill_number) {
    int committed[2];
    ASSERT_EQ(pipe(committed), 0);
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      FileLevel level(folder / "store");
      const auto a = level.table("a", kDim, 0), b = level.table("b", kDim, 0);
      for (int64_t commit = level.note().empty() ? 1 : std::stoll(level.note()) + 1;; ++commit) {
        // In commit n all keys get row n, except every seventh key, which is removed.
        for (int64_t key = 0; key < kKeys; ++key)
          for (LevelTable* table : {a.get(), b.get()})
            if ((key + commit) % 7 == 0)
              table->remove({&key, 1});
            else
              table->put({&key, 1}, row_of_floats(kDim, static_cast<float>(commit)).data());
        level.commit(std::to_string(commit));
        if (write(committed[1], "", 1) != 1) _exit(1);
      }
    }
    close(committed[1]);
    // One in three processes is killed only after at least one commit. The others may be killed while they create the
    // store.
    char byte = 0;
    if (kill_number % 3 == 2) {
      ASSERT_EQ(read(committed[0], &byte, 1), 1);
    }
    usleep(random() % 6000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(committed[0]);
    FileLevel level(folder / "store");
    if (level.note().empty()) continue;
    const int64_t commit = std::stoll(level.note());
    level.verify();
    for (const char* name : {"a", "b"}) {
      const LevelRows rows = level_rows(*level.table(name, kDim, 0));
      for (int64_t key = 0; key < kKeys; ++key) {
        ASSERT_EQ(rows.contains(key), (key + commit) % 7 != 0) << commit << " " << key;
        if (rows.contains(key)) {
          ASSERT_EQ(rows.at(key), row_of_floats(kDim, static_cast<float>(commit)));
        }
      }
    }
  }
  EXPECT_GT(std::stoll(FileLevel(folder / "store").note()), 1);
}

TEST(FileLevel, DamagedRowsAreErrorsThatNameThem) {
  const TemporaryFolder folder;
  const int64_t key = 42;
  {
    FileLevel level(folder / "store");
    const auto table = level.table("t", 2, 0);
    table->put({&key, 1}, row_of_floats(2, 1).data());
    level.commit("");
    File file(std::fopen((folder / "store/table_0.rows").c_str(), "r+"));
    std::fseek(file.get(), 4096 + 16, SEEK_SET);
    std::fputc(7, file.get());
    file.reset();
    float row[2];
    uint8_t found = 0;
    EXPECT_NE(message_of(Kind::data, [&] { table->get({{&key, 1}}, row, 2, &found); }).find("the row of key 42"),
              std::string::npos);
    EXPECT_NE(message_of(Kind::data, [&] { level.verify(); }).find("verifying 't'"), std::string::npos);
  }
  EXPECT_NE(message_of(Kind::data, [&] { FileLevel(folder / "store"); }).find("has 0 complete rows, expected 1"),
            std::string::npos);
}

TEST(FileLevel, CompactKeepsTheRowsAndFreesTheRest) {
  const TemporaryFolder folder;
  LevelRows before;
  {
    FileLevel level(folder / "store");
    const auto table = level.table("t", 4, 0);
    for (int64_t key = 0; key < 1000; ++key) table->put({&key, 1}, row_of_floats(4, static_cast<float>(key)).data());
    level.commit("n");
    for (int64_t key = 0; key < 900; ++key) table->remove({&key, 1});
    level.commit("n");
    before = level_rows(*table);
    EXPECT_GT(level.compact(), 900 * 30);
    EXPECT_EQ(level_rows(*level.table("t", 4, 0)), before);
  }
  FileLevel level(folder / "store");
  EXPECT_EQ(level_rows(*level.table("t", 4, 0)), before);
  EXPECT_EQ(level.note(), "n");
}

TEST(FileLevel, ReadersSeeWholeRowsWhileCommitsReplaceThem) {
  const TemporaryFolder folder;
  FileLevel level(folder / "store");
  const auto table = level.table("t", 6, 0);
  std::vector<int64_t> keys(50);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i);
  const auto put_all = [&](float value) {
    table->put(keys, row_of_floats(6 * 50, value).data());
    level.commit("");
  };
  put_all(0);
  std::atomic<bool> done{false};
  std::atomic<int64_t> torn{0}, lost{0};
  std::thread reader([&] {
    std::vector<float> rows(keys.size() * 6);
    while (!done.load()) {
      std::vector<uint8_t> found(keys.size());
      lost += 50 - table->get({keys}, rows.data(), 6, found.data());
      for (size_t i = 0; i < rows.size(); ++i) torn += rows[i] != rows[i / 6 * 6];
    }
  });
  for (float i = 1; i < 30; ++i) put_all(i);
  done = true;
  reader.join();
  EXPECT_EQ(torn.load(), 0);
  EXPECT_EQ(lost.load(), 0);
}

}  // namespace
}  // namespace hctr::test
