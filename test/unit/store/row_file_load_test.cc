// Loads of new tables into files by several threads.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "core/base/thread_pool.h"
#include "store/block_writer.h"
#include "store/file_level.h"
#include "support/level_rows.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

struct Batch {
  std::vector<int64_t> keys;
  std::vector<float> rows;

  void add(int64_t key, float value, int64_t dim) {
    keys.push_back(key);
    for (int64_t d = 0; d < dim; ++d) rows.push_back(value + static_cast<float>(d));
  }
};

TEST(FileLoads, HaveTheLastRowOfEachKeyAlsoWhenOpenedAgain) {
  ThreadPool threads(3);
  std::mt19937_64 random(7);
  for (const int64_t dim : {1, 8, 300}) {
    for (const int64_t expected : {0, 9000, 100'000}) {
      const TemporaryFolder folder;
      LevelRows plain;
      {
        FileLevel level(folder / "store");
        const auto table = level.table("t", dim, expected);
        for (const int64_t count : {5000, 7, 1024, 12'345}) {
          Batch batch;
          for (int64_t i = 0; i < count; ++i) {
            // In the first batch all keys differ. In the others some keys come twice, and some are in the file already.
            const int64_t key = count == 5000 ? 2 * i : static_cast<int64_t>(random() % 30'000);
            batch.add(key, static_cast<float>(random() % 1000), dim);
            plain[key].assign(batch.rows.end() - dim, batch.rows.end());
          }
          table->put_all(batch.keys, batch.rows.data(), threads);
          EXPECT_EQ(table->size(), std::ssize(plain));
          std::vector<float> row(static_cast<size_t>(dim));
          uint8_t found = 0;
          EXPECT_EQ(table->get({{&batch.keys.back(), 1}}, row.data(), dim, &found), 1);
          EXPECT_EQ(row, plain[batch.keys.back()]) << "before the commit";
        }
        level.commit("n");
        EXPECT_EQ(level_rows(*table), plain);
      }
      FileLevel level(folder / "store");
      EXPECT_EQ(level.verify(), std::ssize(plain));
      const auto table = level.table("t", dim, 0);
      EXPECT_EQ(level_rows(*table), plain);
      const LevelStatistics all = table->statistics();
      EXPECT_EQ(all.bytes, static_cast<int64_t>(fs::file_size(folder / "store/table_0.rows"))) << "no reserved space";
    }
  }
}

TEST(FileLoads, RolledBackLoadsLeaveNothing) {
  const TemporaryFolder folder;
  ThreadPool threads(2);
  Batch batch;
  for (int64_t key = 0; key < 4000; ++key) batch.add(key, 1, 4);
  {
    FileLevel level(folder / "store");
    const auto table = level.table("t", 4, 4000);
    table->put_all(batch.keys, batch.rows.data(), threads);
    level.roll_back();
    EXPECT_EQ(table->size(), 0);
    table->put_all(std::span(batch.keys).first(2000), batch.rows.data(), threads);
    level.commit("n");
  }
  FileLevel level(folder / "store");
  EXPECT_EQ(level.verify(), 2000);
}

TEST(FileLoads, AProcessKilledWhileItLoadsLeavesWholeTables) {
  const TemporaryFolder folder;
  constexpr int64_t kRows = 9000, kBatch = 3000, kDim = 6;
  std::mt19937 random(4);
  const auto name_of = [](int64_t number) { return "t" + std::to_string(number); };
  uint32_t most_wait = 20'000;  // microseconds; grows on a slow machine until a load is complete before the kill
  for (int kill_number = 0; kill_number < 100; ++kill_number) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      ThreadPool threads(2);
      FileLevel level(folder / "store");
      for (int64_t number = level.note().empty() ? 1 : std::stoll(level.note()) + 1;; ++number) {
        const auto table = level.table(name_of(number), kDim, kRows);
        for (int64_t first = 0; first < kRows; first += kBatch) {
          Batch batch;
          for (int64_t key = first; key < first + kBatch; ++key) batch.add(key, static_cast<float>(number), kDim);
          table->put_all(batch.keys, batch.rows.data(), threads);
        }
        if (number > 3) level.drop(name_of(number - 3));  // limits the disk space of the test
        level.commit(std::to_string(number));
      }
    }
    usleep(static_cast<useconds_t>(random() % most_wait));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    FileLevel level(folder / "store");
    const int64_t last = level.note().empty() ? 0 : std::stoll(level.note());
    if (last == 0) most_wait += most_wait / 4;
    ASSERT_EQ(std::ssize(level.namespaces()), std::min<int64_t>(last, 3));
    ASSERT_EQ(level.verify(), std::min<int64_t>(last, 3) * kRows);
    if (last == 0) continue;
    for (const auto& [key, row] : level_rows(*level.table(name_of(last), kDim, 0)))
      ASSERT_EQ(row[1], static_cast<float>(last + 1)) << key;
  }
  EXPECT_GT(std::stoll(FileLevel(folder / "store").note()), 1);
}

TEST(BlockWriter, AFullDiskIsAnErrorThatNamesTheFile) {
  BlockWriter writer("/dev/full", 8192);
  writer.write(0, writer.take(), 8192);
  EXPECT_NE(message_of(Kind::io, [&] { writer.finish(); }).find("cannot write '/dev/full': No space left"),
            std::string::npos);
  EXPECT_NE(message_of(Kind::io, [&] { writer.take(); }).find("No space left"), std::string::npos);
}

}  // namespace
}  // namespace hctr::test
