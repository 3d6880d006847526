#include "hctr/store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "core/base/files.h"
#include "formats/model/model_manifest.h"
#include "hctr/delta_stream.h"
#include "hctr/error.h"
#include "hctr/formats.h"
#include "store/level_plugins.h"
#include "support/message_of.h"
#include "support/redis_servers.h"
#include "support/store_model.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

using PlainTable = std::map<int64_t, std::vector<float>>;

std::vector<float> random_row(std::mt19937_64& random, int64_t dim) {
  std::vector<float> row(static_cast<size_t>(dim));
  for (float& element : row) element = static_cast<float>(random() % 2001) / 1000 - 1;
  return row;
}

PlainTable random_table(uint64_t seed, int64_t dim, int64_t keys) {
  std::mt19937_64 random(seed);
  PlainTable rows;
  for (int64_t i = 0; i < keys; ++i) rows[static_cast<int64_t>(random() % 3000) - 1500] = random_row(random, dim);
  return rows;
}

StoreTableSource source_of(const std::string& name, int64_t dim, const PlainTable& table, float default_value = 0) {
  return {.name = name, .dim = dim, .default_value = default_value, .rows = [&table](const StoreRowSink& sink) {
            for (const auto& [key, row] : table) sink({}, {&key, 1}, row);
          }};
}

void expect_rows(const StoreView& view, size_t number, const PlainTable& table, std::mt19937_64& random) {
  const StoreView::Table about = view.tables()[number];
  std::vector<int64_t> keys(random() % 300);
  for (int64_t& key : keys) key = static_cast<int64_t>(random() % 3000) - 1500;
  const int64_t stride = about.dim + static_cast<int64_t>(random() % 3);
  std::vector<float> rows(keys.size() * static_cast<size_t>(stride), 9);
  std::vector<uint8_t> found(keys.size());
  view.get(number, keys, rows.data(), stride, found.data());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto row = table.find(keys[i]);
    ASSERT_EQ(found[i] != 0, row != table.end());
    const std::vector<float> wanted =
        row == table.end() ? std::vector<float>(static_cast<size_t>(about.dim), about.default_value) : row->second;
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), rows.begin() + static_cast<ptrdiff_t>(i) * stride)) << keys[i];
  }
}

std::vector<StoreLevelOptions> levels_of(const std::string& which, const fs::path& folder,
                                         const std::vector<std::string>& addresses = {}) {
  const StoreLevelOptions file{.kind = StoreLevelOptions::Kind::file, .folder = folder};
  if (which == "memory") return {StoreLevelOptions{}};
  if (which == "file") return {file};
  const StoreLevelOptions rocksdb{
      .kind = StoreLevelOptions::Kind::rocksdb,
      .rocksdb = {.folder = folder, .cache_bytes = 1 << 20, .reader_threads = 2, .background_threads = 1}};
  if (which == "rocksdb") return {rocksdb};
  const StoreLevelOptions redis{.kind = StoreLevelOptions::Kind::redis,
                                .redis = {.addresses = addresses, .partitions = 4, .timeout_ms = 30000}};
  if (which == "redis") return {redis};
  if (which == "redis_file") return {redis, file};
  if (which == "cache_redis_rocksdb") return {StoreLevelOptions{.most_rows = 200}, redis, rocksdb};
  if (which == "cache_rocksdb") return {StoreLevelOptions{.most_rows = 200}, rocksdb};
  return {StoreLevelOptions{.most_rows = which == "cache" ? 200 : 0}, file};
}

class StoreLevels : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string_view which = GetParam();
    const bool with_redis = which.find("redis") != which.npos;
    if (with_redis && !why_no_redis().empty()) GTEST_SKIP() << why_no_redis();
    try {
      if (which.ends_with("rocksdb")) rocks_plugin();
      if (!with_redis) return;
      redis_plugin();
      servers_ = std::make_unique<RedisServers>();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  StoreOptions options() const {
    return {.levels = levels_of(GetParam(), folder_ / "store",
                                servers_ ? servers_->addresses() : std::vector<std::string>())};
  }
  bool lasts() const { return std::string(GetParam()) != "memory" && std::string(GetParam()) != "redis"; }
  TemporaryFolder folder_;
  std::unique_ptr<RedisServers> servers_;
};

TEST_P(StoreLevels, AnswersWhatAPlainMapDoesWithUpdatesVersionsAndRestarts) {
  constexpr int64_t kDims[2] = {3, 8};
  std::map<std::string, std::vector<PlainTable>> plain;
  std::map<std::string, int64_t> iterations;
  std::string active;
  auto store = std::make_unique<Store>(options());
  std::mt19937_64 random(7);
  int64_t next = 0;
  for (int step = 0; step < 400; ++step) {
    const uint64_t what = step == 0 ? 0 : random() % 40;
    if (what == 0) {
      const std::string version = std::to_string(next++);
      plain[version] = {random_table(random(), kDims[0], 700), random_table(random(), kDims[1], 700)};
      store->load(
          {.name = "m",
           .version = version,
           .tables = {source_of("a", kDims[0], plain[version][0]), source_of("b", kDims[1], plain[version][1], 0.5f)}});
      iterations[version] = -1;
      if (active.empty()) active = version;
    } else if (what == 1) {
      auto chosen = plain.begin();
      std::advance(chosen, static_cast<ptrdiff_t>(random() % plain.size()));
      active = chosen->first;
      store->activate("m", active);
    } else if (what == 2 && plain.size() > 1) {
      const std::string gone = plain.begin()->first == active ? plain.rbegin()->first : plain.begin()->first;
      store->unload("m", gone);
      plain.erase(gone);
    } else if (what == 3 && lasts()) {
      store.reset();
      store = std::make_unique<Store>(options());
    } else if (what == 4 && lasts()) {
      store->compact();
      store->verify();
    } else if (what < 20) {
      const size_t t = random() % 2;
      std::vector<int64_t> keys, removed;
      std::vector<float> rows;
      for (int i = 0; i < 30; ++i) {
        const auto key = static_cast<int64_t>(random() % 3000) - 1500;
        if (random() % 3 == 0 || std::ranges::count(keys, key) > 0) {
          if (std::ranges::count(keys, key) == 0) removed.push_back(key);
          continue;
        }
        keys.push_back(key);
        const std::vector<float> row = random_row(random, kDims[t]);
        rows.insert(rows.end(), row.begin(), row.end());
      }
      for (const int64_t key : removed) plain[active][t].erase(key);
      for (size_t i = 0; i < keys.size(); ++i) {
        const float* const row = rows.data() + static_cast<int64_t>(i) * kDims[t];
        plain[active][t][keys[i]].assign(row, row + kDims[t]);
      }
      const StoreTableUpdate update{.table = t == 0 ? "a" : "b", .keys = keys, .rows = rows.data(), .removed = removed};
      EXPECT_TRUE(store->apply("m", ++iterations[active], {&update, 1}));
      EXPECT_FALSE(store->apply("m", iterations[active], {&update, 1}));
    }
    const StoreView view = store->view("m");
    ASSERT_EQ(view.version(), active);
    for (size_t t = 0; t < 2; ++t) ASSERT_NO_FATAL_FAILURE(expect_rows(view, t, plain[active][t], random));
  }
}

TEST_P(StoreLevels, ReadersSeeWholeRowsOfTheirVersionDuringUpdatesAndSwaps) {
  Store store(options());
  PlainTable table;
  for (int64_t key = 0; key < 500; ++key) table[key] = std::vector<float>(7, 0);
  store.load({.name = "m", .version = "0", .tables = {source_of("t", 7, table)}});
  std::atomic<bool> done{false};
  std::atomic<int64_t> torn{0}, lost{0}, old{0};
  std::atomic<float> least{0};  // lower bound of all row values in a new view
  const auto read = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<int64_t> keys(64);
    std::vector<float> rows(keys.size() * 7);
    while (!done.load()) {
      for (int64_t& key : keys) key = static_cast<int64_t>(random() % 500);
      const float at_least = least.load();
      lost += store.view("m").get(0, keys, rows.data());
      for (size_t i = 0; i < rows.size(); ++i) {
        torn += rows[i] != rows[i / 7 * 7];
        old += rows[i] < at_least;
      }
    }
  };
  std::thread readers[2] = {std::thread(read, 1), std::thread(read, 2)};
  std::vector<int64_t> keys(500);
  for (int64_t key = 0; key < 500; ++key) keys[static_cast<size_t>(key)] = key;
  for (int i = 1; i <= 20; ++i) {
    const std::vector<float> rows(500 * 7, static_cast<float>(i));
    if (i % 5 == 0) {
      for (auto& [key, row] : table) row.assign(7, static_cast<float>(i));
      store.load({.name = "m", .version = std::to_string(i), .tables = {source_of("t", 7, table)}});
      store.activate("m", std::to_string(i));
      store.unload("m", i == 5 ? "0" : std::to_string(i - 5));
    } else {
      const StoreTableUpdate update{.table = "t", .keys = keys, .rows = rows.data()};
      store.apply("m", i, {&update, 1});
    }
    least = static_cast<float>(i);
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0);
  EXPECT_EQ(lost.load(), 0);
  EXPECT_EQ(old.load(), 0);
}

TEST_P(StoreLevels, UnchangedTablesAreSharedUntilAnUpdateChangesThem) {
  Store store(options());
  const PlainTable table = random_table(1, 4, 100);
  StoreTableSource source = source_of("t", 4, table);
  source.content = "same";
  store.load({.name = "m", .version = "1", .tables = {source}});
  source.rows = [](const StoreRowSink&) { FAIL() << "read again"; };
  store.load({.name = "m", .version = "2", .tables = {source}});
  store.activate("m", "2");
  const int64_t key = table.begin()->first;
  const std::vector<float> row(4, 7);
  const StoreTableUpdate update{.table = "t", .keys = {&key, 1}, .rows = row.data()};
  store.apply("m", 1, {&update, 1});
  std::vector<float> got(4);
  store.view("m").get(0, {&key, 1}, got.data());
  EXPECT_EQ(got, row);
  store.activate("m", "1");
  store.view("m").get(0, {&key, 1}, got.data());
  EXPECT_EQ(got, table.begin()->second);
}

TEST_P(StoreLevels, AnAnswerInSeveralTablesIsBeforeOrAfterAnUpdate) {
  Store store(options());
  PlainTable table;
  for (int64_t key = 0; key < 300; ++key) table[key] = std::vector<float>(4, 0);
  store.load(
      {.name = "m", .version = "0", .iteration = 0, .tables = {source_of("a", 4, table), source_of("b", 4, table)}});
  std::atomic<bool> done{false};
  std::atomic<int64_t> mixed{0}, answers{0};
  const auto read = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<int64_t> keys(40);
    std::vector<float> rows(keys.size() * 4);
    while (!done.load()) {
      const StoreReading reading(store.view("m"));
      const auto wanted = static_cast<float>(reading.iteration());
      for (int look = 0; look < 4; ++look) {
        // In odd iterations the last 100 rows are removed.
        for (int64_t& key : keys) key = static_cast<int64_t>(random() % 300);
        std::vector<uint8_t> found(keys.size());
        reading.get(static_cast<size_t>(look % 2), keys, rows.data(), 0, found.data());
        for (size_t i = 0; i < keys.size(); ++i) {
          const bool there = keys[i] < 200 || reading.iteration() % 2 == 0;
          mixed += found[i] != there || rows[4 * i] != (there ? wanted : 0);
        }
      }
      ++answers;
    }
  };
  std::thread readers[2] = {std::thread(read, 1), std::thread(read, 2)};
  std::vector<int64_t> keys(300);
  std::iota(keys.begin(), keys.end(), int64_t{0});
  const std::span<const int64_t> all = keys;
  for (int i = 1; i <= 20; ++i) {
    const std::vector<float> rows(300 * 4, static_cast<float>(i));
    const bool odd = i % 2 == 1;
    StoreTableUpdate updates[2] = {{.table = "a", .rows = rows.data()}, {.table = "b", .rows = rows.data()}};
    for (StoreTableUpdate& update : updates) {
      update.keys = all.first(odd ? 200 : 300);
      if (odd) update.removed = all.subspan(200);
    }
    store.apply("m", i, updates);
    for (const int64_t before = answers; answers < before + 2;) std::this_thread::yield();
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(mixed.load(), 0);
}

TEST_P(StoreLevels, AnUpdateThatWaitsForItsRateLetsOthersLoadAndActivate) {
  StoreOptions slow = options();
  slow.update_rows_per_second = 2000;
  const PlainTable table = {{1, {1}}}, other = {{1, {2}}};
  {
    Store store(slow);
    store.load({.name = "m", .version = "1", .iteration = 0, .tables = {source_of("t", 1, table)}});
    std::vector<int64_t> keys(3000);
    std::iota(keys.begin(), keys.end(), int64_t{1});
    const std::vector<float> rows(keys.size(), 5);
    std::atomic<bool> begun{false}, ended{false};
    std::thread updater([&] {
      begun = true;
      const StoreTableUpdate update{.table = "t", .keys = keys, .rows = rows.data()};
      store.apply("m", 1, {&update, 1});
      ended = true;
    });
    while (!begun) std::this_thread::yield();
    store.load({.name = "n", .version = "1", .tables = {source_of("t", 1, other)}});
    store.load({.name = "n", .version = "2", .tables = {source_of("t", 1, table)}});
    store.activate("n", "2");
    EXPECT_FALSE(ended.load());
    updater.join();
  }
  if (!lasts()) return;
  Store store(slow);
  EXPECT_EQ(store.models()[0].iteration, 1);
  EXPECT_EQ(store.tables()[0].rows, 3000);
  EXPECT_EQ(store.view("n").version(), "2");
  EXPECT_EQ(store.verify(), 3002);
}

/// While an update is in progress, another change of the store is committed. After a crash the store must have the rows
/// and the stream position from before the update.
TEST_P(StoreLevels, ACommitDuringAnUpdateContainsNothingOfIt) {
  if (!lasts()) GTEST_SKIP() << "rows do not outlive the store";
  StoreOptions slow = options();
  slow.update_rows_per_second = 2000;
  const PlainTable table = {{1, {1}}, {2, {1}}}, other = {{1, {2}}};
  Store store(slow);
  store.load({.name = "m",
              .version = "1",
              .run = "run",
              .tables = {{.name = "t", .dim = 1, .by_slot = true, .rows = [](const StoreRowSink&) {}}}});
  std::vector<int64_t> keys(3000);
  std::iota(keys.begin(), keys.end(), int64_t{1});
  const auto delta = [&](int64_t iteration, size_t slot_of_last) {
    StreamedDelta::Rows rows;
    rows.keys = keys;
    rows.slots.assign(keys.size(), 3);
    rows.slots.back() = static_cast<int32_t>(slot_of_last);
    rows.rows.assign(keys.size(), static_cast<float>(iteration));
    const auto count = std::ssize(keys) + (slot_of_last == 3 || iteration == 1 ? 0 : 1);
    return StreamedDelta{.about = {.run = "run",
                                   .iteration = iteration,
                                   .base = iteration - 1,
                                   .tables = {{.name = "t", .dim = 1, .by_slot = true, .rows = count}}},
                         .tables = {rows}};
  };
  store.apply("m", delta(1, 3), "first");
  std::atomic<bool> begun{false}, ended{false};
  std::thread updater([&] {
    begun = true;
    store.apply("m", delta(2, 4), "second");  // adds slot 4
    ended = true;
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  store.load({.name = "n", .version = "1", .tables = {source_of("t", 1, other)}});
  const std::string position = store.position("m");
  const bool during = !ended;
  fs::copy(folder_ / "store", folder_ / "crashed", fs::copy_options::recursive);
  updater.join();
  EXPECT_EQ(store.position("m"), "second");
  ASSERT_TRUE(during) << "the other model was loaded only after the update";
  EXPECT_EQ(position, "first");
  StoreOptions crashed = options();
  crashed.levels = {levels_of(GetParam(), folder_ / "crashed").back()};
  const Store reopened(crashed);
  EXPECT_EQ(reopened.position("m"), "first");
  EXPECT_EQ(reopened.models()[0].iteration, 1);
  EXPECT_EQ(reopened.models()[1].model, "n");
  std::vector<float> rows(keys.size());
  EXPECT_EQ(reopened.view("m").get(0, keys, rows.data(), 0, nullptr, 3), 0);
  EXPECT_EQ(rows, std::vector<float>(keys.size(), 1));
  EXPECT_EQ(reopened.view("m").get(0, keys, rows.data(), 0, nullptr, 4), std::ssize(keys));
}

TEST_P(StoreLevels, SlowLookUpsDelayAnUpdateOnceAndNoOtherChange) {
  StoreOptions slow = options();
  slow.update_rows_per_second = 2000;
  const PlainTable table = {{1, {1}}};
  Store store(slow);
  store.load({.name = "m", .version = "1", .iteration = 0, .tables = {source_of("t", 1, table)}});
  std::vector<int64_t> keys(2000);
  std::iota(keys.begin(), keys.end(), int64_t{1});
  const auto apply = [&](int64_t iteration) {
    const std::vector<float> rows(keys.size(), static_cast<float>(iteration));
    const StoreTableUpdate update{.table = "t", .keys = keys, .rows = rows.data()};
    store.apply("m", iteration, {&update, 1});
  };
  const auto row_of_1 = [](const StoreReading& reading) {
    const int64_t key = 1;
    float row = 0;
    reading.get(0, {&key, 1}, &row);
    return row;
  };
  std::atomic<bool> ended{false};
  std::optional<StoreReading> early(store.view("m"));
  std::thread updater([&] {
    apply(1);
    ended = true;
  });
  while (StoreReading(store.view("m")).iteration() != 1) std::this_thread::yield();
  store.load({.name = "n", .version = "1", .tables = {source_of("t", 1, table)}});
  store.load({.name = "n", .version = "2", .tables = {source_of("u", 1, table)}});
  store.activate("n", "2");
  EXPECT_FALSE(ended.load()) << "an earlier look-up still reads the rows before the update";
  EXPECT_EQ(row_of_1(*early), 1);
  std::optional<StoreReading> during(store.view("m"));
  EXPECT_EQ(row_of_1(*during), 1);
  early.reset();
  updater.join();  // the update does not wait for `during`
  EXPECT_EQ(row_of_1(*during), 1);
  ended = false;
  std::thread next([&] {
    apply(2);
    ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(ended.load());
  EXPECT_EQ(row_of_1(*during), 1);
  during.reset();
  next.join();
  EXPECT_EQ(row_of_1(StoreReading(store.view("m"))), 2);
}

/// The update copies a table that version "1" also has. It waits for `early`, while new look-ups read the copy.
TEST_P(StoreLevels, ACopiedTableHasAllRowsAsSoonAsAnUpdateIsVisible) {
  Store store(options());
  const PlainTable table = random_table(1, 4, 100);
  StoreTableSource source = source_of("t", 4, table);
  source.content = "same";
  store.load({.name = "m", .version = "1", .iteration = 0, .tables = {source}});
  store.load({.name = "m", .version = "2", .iteration = 0, .tables = {source}});
  store.activate("m", "2");
  std::vector<int64_t> keys;
  for (const auto& [key, row] : table) keys.push_back(key);
  std::optional<StoreReading> early(store.view("m"));
  std::thread updater([&] {
    const std::vector<float> row(4, 7);
    const StoreTableUpdate update{.table = "t", .keys = {keys.data(), 1}, .rows = row.data()};
    store.apply("m", 1, {&update, 1});
  });
  while (StoreReading(store.view("m")).iteration() != 1) std::this_thread::yield();
  std::vector<float> rows(keys.size() * 4);
  std::vector<uint8_t> found(keys.size());
  StoreReading(store.view("m")).get(0, keys, rows.data(), 0, found.data());
  early.reset();
  updater.join();
  EXPECT_EQ(std::ranges::count(found, 1), std::ssize(keys));
  for (size_t i = 1; i < keys.size(); ++i)
    ASSERT_EQ(std::vector(rows.begin() + 4 * static_cast<int64_t>(i), rows.begin() + 4 * static_cast<int64_t>(i) + 4),
              table.at(keys[i]))
        << "key " << keys[i];
}

/// test/trials/store_trial.cc runs ten million operations with concurrent lookups.
TEST_P(StoreLevels, RandomOperationsGiveWhatPlainMapsDo) {
  Store store(options());
  StoreOperations all(store, 5, 1500, lasts());
  for (int step = 0; step < (lasts() ? 150 : 600); ++step) all.step();
  EXPECT_EQ(all.wrong(), 0);
  EXPECT_GT(all.operations(), 100'000);
}

INSTANTIATE_TEST_SUITE_P(All, StoreLevels,
                         ::testing::Values("memory", "file", "both", "cache", "rocksdb", "cache_rocksdb", "redis",
                                           "redis_file", "cache_redis_rocksdb"),
                         [](const auto& level) { return std::string(level.param); });

class StoreWithRedis : public StoreLevels {};

TEST_P(StoreWithRedis, AnswersRightWhileTheServerIsLostHangsAndComesBack) {
  StoreOptions of = options();
  for (StoreLevelOptions& level : of.levels) level.redis.timeout_ms = 200;
  Store store(of);
  PlainTable table = random_table(3, 4, 500);
  std::mt19937_64 random(4);
  store.load({.name = "m", .version = "1", .tables = {source_of("t", 4, table)}});
  int64_t iteration = 0;
  for (const char* what : {"kill", "start", "pause", "resume"}) {
    const std::string_view event = what;
    if (event == "kill") servers_->kill(0);
    if (event == "start") servers_->start(0);
    if (event == "pause") servers_->pause(0);
    if (event == "resume") servers_->resume(0);
    for (int round = 0; round < 5; ++round) {
      const auto key = static_cast<int64_t>(random() % 3000) - 1500;
      table[key] = random_row(random, 4);
      const StoreTableUpdate update{.table = "t", .keys = {&key, 1}, .rows = table[key].data()};
      ASSERT_TRUE(store.apply("m", ++iteration, {&update, 1}));
      ASSERT_NO_FATAL_FAILURE(expect_rows(store.view("m"), 0, table, random));
    }
  }
  const std::vector<StoreTableStatistics::Level> levels = store.tables()[0].levels;
  const auto redis = std::ranges::find(levels, "redis", &StoreTableStatistics::Level::name);
  ASSERT_NE(redis, levels.end());
  EXPECT_GT(redis->failed, 0);
}

INSTANTIATE_TEST_SUITE_P(All, StoreWithRedis, ::testing::Values("redis_file", "cache_redis_rocksdb"),
                         [](const auto& level) { return std::string(level.param); });

TEST(Store, PoolsInTheOrderOfKeysAndCountsWhatHasNoRow) {
  Store store({});
  const PlainTable table = {{1, {1, 2}}, {2, {10, 20}}};
  store.load({.name = "m", .version = "1", .tables = {source_of("t", 2, table), source_of("u", 2, table, 3)}});
  const StoreView view = store.view("m");
  const std::vector<int64_t> keys = {1, 2, 2, 5, 1}, offsets = {0, 3, 3, 5};
  const auto pooled = [&](size_t t, StoreView::Pooling pooling) {
    std::vector<float> vectors(6);
    EXPECT_EQ(view.get_pooled(t, keys, offsets, pooling, vectors.data()), 1);
    return vectors;
  };
  EXPECT_EQ(pooled(0, StoreView::Pooling::sum), (std::vector<float>{21, 42, 0, 0, 1, 2}));
  EXPECT_EQ(pooled(0, StoreView::Pooling::mean), (std::vector<float>{21 * (1.0f / 3), 42 * (1.0f / 3), 0, 0, 0.5f, 1}));
  EXPECT_EQ(pooled(0, StoreView::Pooling::sqrtn)[4], 1 / std::sqrt(2.0f));
  EXPECT_EQ(pooled(1, StoreView::Pooling::sum), (std::vector<float>{21, 42, 0, 0, 4, 5}));
  const StoreTableStatistics counts = store.tables()[0];
  EXPECT_EQ(counts.asked, 15);
  EXPECT_EQ(counts.unique, 9);
  EXPECT_EQ(counts.defaults, 3);
}

TEST(Store, LevelsThatDoNotFitTogetherAreErrors) {
  using Kind_ = StoreLevelOptions::Kind;
  const auto message_for = [](std::vector<StoreLevelOptions> levels) {
    return message_of(Kind::config, [&] { Store store({.levels = std::move(levels)}); });
  };
  EXPECT_NE(message_for({{.kind = Kind_::file, .folder = "f"}, {}}).find("memory, redis, then file or rocksdb"),
            std::string::npos);
  EXPECT_NE(message_for({{}, {.kind = Kind_::redis, .redis = {.names = StoreNames::hugectr}}})
                .find("cannot be combined with a level above Redis"),
            std::string::npos);
  EXPECT_NE(message_for({{}, {.kind = Kind_::rocksdb, .rocksdb = {.opening = StoreRocksOptions::Opening::follow}}})
                .find("cannot be combined with other levels"),
            std::string::npos);
}

TEST(Store, AKeyWithoutARowIsAnErrorWhereTheModelSaysSo) {
  Store store({});
  const PlainTable table = {{1, {1, 2}}};
  store.load({.name = "m", .version = "1", .on_miss = OnMiss::error, .tables = {source_of("t", 2, table)}});
  const std::vector<int64_t> keys = {1, 5, 6};
  std::vector<float> rows(6);
  EXPECT_EQ(message_of(Kind::data, [&] { store.view("m").get(0, keys, rows.data()); }),
            "table 't' of model 'm' has no row of key 5 and 1 other key");
  EXPECT_EQ(message_of(Kind::usage, [&] { store.view("n"); }), "the store has no model 'n'; it has 'm'");
}

TEST(Store, RowsOfSlotsAreApart) {
  const TemporaryFolder folder;
  const StoreOptions options{.levels = levels_of("both", folder / "store")};
  const StoreTableSource source{.name = "t", .dim = 1, .by_slot = true, .rows = [](const StoreRowSink& sink) {
                                  const std::vector<int32_t> slots = {0, 0, 3};
                                  const std::vector<int64_t> keys = {1, 2, 1};
                                  const std::vector<float> rows = {1, 2, 3};
                                  sink(slots, keys, rows);
                                }};
  for (int open = 0; open < 2; ++open) {
    Store store(options);
    if (open == 0) store.load({.name = "m", .version = "1", .tables = {source}});
    const std::vector<int64_t> keys = {1, 2};
    std::vector<float> rows(2);
    EXPECT_EQ(store.view("m").get(0, keys, rows.data(), 0, nullptr, 3), 1);
    EXPECT_EQ(rows, (std::vector<float>{3, 0}));
    EXPECT_EQ(store.view("m").get(0, keys, rows.data(), 0, nullptr, 0), 0);
    EXPECT_EQ(store.view("m").get(0, keys, rows.data(), 0, nullptr, 1), 2);
  }
}

/// Writes a delta of one table in the format of training.
void write_delta(const std::string& prefix, int64_t base, int64_t iteration, const PlainTable& changed,
                 const std::vector<int64_t>& removed, int64_t rows) {
  const std::string inside = formats::delta_name(prefix, iteration) + "/";
  fs::create_directories(inside);
  FileSet set;
  AtomicFile& to = set.add(formats::model_manifest_name(inside, std::to_string(iteration)));
  AtomicFile& sparse = set.add(formats::sparse_model_name(inside, 0, iteration));
  for (const auto& [key, row] : changed) {
    sparse.write(&key, sizeof key);
    sparse.write(row.data(), row.size() * sizeof(float));
  }
  AtomicFile& gone = set.add(formats::removed_keys_name(inside, 0, iteration));
  for (const int64_t key : removed) {
    const int64_t both[2] = {0, key};
    gone.write(both, sizeof both);
  }
  for (AtomicFile& file : set.files())
    if (&file != &to) file.finish();
  SavedDelta delta{.base = base};
  delta.tables = {{rows, static_cast<int64_t>(changed.size()), static_cast<int64_t>(removed.size())}};
  write_model_manifest(
      set, to, {.run = "r", .iteration = iteration, .tables = {{"t", 2, false}}, .delta = delta, .prefix = inside});
  set.commit();
}

TEST(Store, DeltasAreAppliedOnceWholeAndInOrderAcrossRestarts) {
  const TemporaryFolder folder;
  const std::string prefix = (folder / "m").string();
  PlainTable table = {{1, {1, 1}}, {2, {2, 2}}, {3, {3, 3}}};
  write_delta(prefix, 10, 20, {{2, {5, 5}}, {4, {6, 6}}}, {1}, 3);
  write_delta(prefix, 20, 30, {{1, {7, 7}}}, {4}, 3);
  write_delta(prefix, 40, 50, {{1, {8, 8}}}, {}, 3);
  const StoreOptions options{.levels = levels_of("both", folder / "store")};
  std::mt19937_64 random(1);
  {
    Store store(options);
    store.load({.name = "m", .version = "1", .run = "r", .iteration = 10, .tables = {source_of("t", 2, table)}});
    const std::string late = message_of(Kind::data, [&] { store.apply_delta("m", prefix + "_delta_30"); });
    EXPECT_NE(late.find("since iteration 20, but version '1' has iteration 10"), std::string::npos) << late;
    ASSERT_NO_FATAL_FAILURE(expect_rows(store.view("m"), 0, table, random));
    EXPECT_TRUE(store.apply_delta("m", prefix + "_delta_20"));
  }
  Store store(options);
  EXPECT_FALSE(store.apply_delta("m", prefix + "_delta_20"));
  EXPECT_NE(message_of(Kind::data, [&] { store.update("m", prefix); }).find("since iteration 40"), std::string::npos);
  table = {{1, {7, 7}}, {2, {5, 5}}, {3, {3, 3}}};
  for (int i = 0; i < 10; ++i) ASSERT_NO_FATAL_FAILURE(expect_rows(store.view("m"), 0, table, random));
  const StoreModelStatistics about = store.models()[0];
  EXPECT_EQ(about.iteration, 30);
  EXPECT_EQ(about.updates, 1);
  EXPECT_EQ(about.waiting, 1);
  EXPECT_GE(about.age_seconds, 0);
}

TEST(Store, ADeltaThatBuildsOnOtherRowsOrIsDamagedChangesNothing) {
  const TemporaryFolder folder;
  const std::string prefix = (folder / "m").string();
  const PlainTable table = {{1, {1, 1}}};
  write_delta(prefix, 10, 20, {{2, {5, 5}}}, {}, 7);
  write_delta(prefix, 10, 21, {{2, {5, 5}}}, {}, 2);
  Store store({});
  store.load({.name = "m", .version = "1", .run = "r", .iteration = 10, .tables = {source_of("t", 2, table)}});
  EXPECT_NE(message_of(Kind::data, [&] { store.apply_delta("m", prefix + "_delta_20"); })
                .find("has 2 rows after the update, but the update states 7"),
            std::string::npos);
  File file(std::fopen(formats::sparse_model_name(prefix + "_delta_21/", 0, 21).c_str(), "r+"));
  std::fputc(9, file.get());
  file.reset();
  message_of(Kind::data, [&] { store.apply_delta("m", prefix + "_delta_21"); });
  EXPECT_EQ(store.tables()[0].rows, 1);
  EXPECT_EQ(store.models()[0].iteration, 10);
}

TEST(Store, ReadsTablesOfSafetensors) {
  const TemporaryFolder folder;
  const std::string header =
      R"({"key":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},"vector":{"dtype":"BF16","shape":[2,1],)"
      R"("data_offsets":[16,20]}})";
  const auto length = static_cast<uint64_t>(header.size());
  const int64_t keys[2] = {5, -6};
  const uint16_t halves[2] = {0x3f80, 0xc000};
  std::string bytes(reinterpret_cast<const char*>(&length), 8);
  bytes += header + std::string(reinterpret_cast<const char*>(keys), 16) +
           std::string(reinterpret_cast<const char*>(halves), 4);
  write_text(folder / "t.safetensors", bytes);
  Store store({});
  store.load({.name = "m", .version = "1", .tables = {{.name = "t", .dim = 1, .file = folder / "t.safetensors"}}});
  std::vector<float> rows(2);
  EXPECT_EQ(store.view("m").get(0, keys, rows.data()), 0);
  EXPECT_EQ(rows, (std::vector<float>{1, -2}));
  write_text(folder / "cut.safetensors", bytes.substr(0, bytes.size() - 1));
  EXPECT_NE(message_of(Kind::data,
                       [&] {
                         store.load({.name = "n",
                                     .version = "1",
                                     .tables = {{.name = "t", .dim = 1, .file = folder / "cut.safetensors"}}});
                       })
                .find("is too short for 'vector'"),
            std::string::npos);
  EXPECT_FALSE(store.has("n"));
}

}  // namespace
}  // namespace hctr::test
