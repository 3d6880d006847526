// A cache in front of a store gives the store's results while rows and versions change.
#include "hctr/store_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <random>
#include <thread>

#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "core/device/device.h"
#include "store/bound_version.h"
#include "store/level_plugins.h"
#include "support/devices.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

constexpr int64_t kCacheKeys = 4000;

/// A table of version v: all elements of key k are v * 10000 + k. Multiples of 9 have no row.
StoreTableSource cached_source(const std::string& name, int64_t dim, int version, float default_value) {
  return {.name = name, .dim = dim, .default_value = default_value, .rows = [dim, version](const StoreRowSink& sink) {
            for (int64_t key = 1; key < kCacheKeys; ++key)
              if (key % 9 != 0)
                sink({}, {&key, 1},
                     std::vector<float>(static_cast<size_t>(dim), static_cast<float>(version * 10000 + key)));
          }};
}

StoreModel cached_model(int version, OnMiss on_miss = OnMiss::default_vector) {
  return {.name = "ctr",
          .version = std::to_string(version),
          .on_miss = on_miss,
          .tables = {cached_source("wide", 96, version, 0), cached_source("small", 4, version, 0.5f)}};
}

class StoreCacheTest : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (GetParam().is_cuda()) HCTR_SKIP_WITHOUT_GPU();
  }
  /// A cache that holds the small table completely, and the other table partially.
  StoreCache cache_of(const Store& store, StoreCacheOptions options = {}) const {
    options.bytes = 2 * DeviceCache::bytes_of({.dim = 4, .rows = 7000, .whole = true}, 16384) +
                    DeviceCache::bytes_of({.dim = 96, .rows = 1200}, 16384);
    options.admit_after = 1;
    const Device device = GetParam();
    return cache_on(store, "ctr", options, &device);
  }
};
INSTANTIATE_TEST_SUITE_P(Device, StoreCacheTest, testing::Values(kCpu, kGpu),
                         [](const auto& row) { return row.param.is_cuda() ? "cuda" : "cpu"; });

/// A random request for both tables: rows of one table, and bags of the other.
struct Request {
  explicit Request(std::mt19937_64& random) {
    for (auto n = random() % 200; n > 0; --n) {
      keys.push_back(static_cast<int64_t>(random() % 3 ? random() % 64 : random() % kCacheKeys));
      if (random() % 3 == 0) offsets.push_back(static_cast<int64_t>(keys.size()));
    }
    offsets.push_back(static_cast<int64_t>(keys.size()));
  }
  std::vector<int64_t> keys, offsets{0};
  std::vector<float> wide, small{};

  void ask(StoreCache& cache, Device device, const Stream& stream) {
    const Buffer wide_there(device, keys.size() * 96 * sizeof(float) + 16),
        small_there(device, offsets.size() * 4 * sizeof(float));
    const std::vector<StoreCache::Part> parts = {
        {.table = 0, .keys = keys, .vectors = reinterpret_cast<float*>(wide_there.data())},
        {.table = 1,
         .keys = keys,
         .offsets = offsets,
         .pooling = StoreView::Pooling::sqrtn,
         .vectors = reinterpret_cast<float*>(small_there.data())}};
    cache.lookup(parts, stream.ref().handle);
    wide.resize(keys.size() * 96);
    small.resize((offsets.size() - 1) * 4);
    copy_bytes(stream.ref(), wide.data(), wide_there.data(), wide.size() * sizeof(float));
    copy_bytes(stream.ref(), small.data(), small_there.data(), small.size() * sizeof(float));
    stream.ref().synchronize();
  }
  /// Whether the vectors equal those of the store.
  bool equals(const StoreReading& reading) const {
    std::vector<float> rows(wide.size()), pooled(small.size());
    reading.get(0, keys, rows.data());
    reading.get_pooled(1, keys, offsets, StoreView::Pooling::sqrtn, pooled.data());
    return rows == wide && pooled == small;
  }
};

TEST_P(StoreCacheTest, AnswersAreThoseOfTheStoreThroughUpdatesAndVersions) {
  Store store{StoreOptions{}};
  store.load(cached_model(1));
  StoreCache cache = cache_of(store);
  EXPECT_EQ(cache.statistics().whole_tables, std::vector<std::string>{"small"});
  const Stream stream(GetParam());
  std::mt19937_64 random(3);
  for (int round = 0; round < 60; ++round) {
    Request request(random);
    request.ask(cache, GetParam(), stream);
    ASSERT_TRUE(request.equals(StoreReading(store.view("ctr")))) << "round " << round;
    if (round % 10 == 9) {
      std::vector<int64_t> keys, removed;
      std::vector<float> rows;
      for (int64_t key = 1; key < kCacheKeys; ++key)
        if (random() % 4 == 0) {
          keys.push_back(key);
          rows.insert(rows.end(), 96, static_cast<float>(random() % 1000));
        } else if (random() % 50 == 0) {
          removed.push_back(key);
        }
      const std::vector<float> small(keys.size() * 4, static_cast<float>(round));
      const std::vector<StoreTableUpdate> update = {
          {.table = "wide", .keys = keys, .rows = rows.data(), .removed = removed},
          {.table = "small", .keys = keys, .rows = small.data(), .removed = removed}};
      ASSERT_TRUE(store.apply("ctr", round, update));
    }
    if (round == 25 || round == 45) {
      const int version = round == 25 ? 2 : 3;
      store.load(cached_model(version));
      cache.activate(std::to_string(version));
      EXPECT_EQ(store.view("ctr").version(), std::to_string(version));
      EXPECT_GT(cache.statistics().keys, 3000) << "the hot keys of the wide table beside all of the small one";
    }
  }
  const StoreCacheStatistics statistics = cache.statistics();
  EXPECT_EQ(statistics.version, "3");
  EXPECT_GT(statistics.misses, 0);
  EXPECT_LT(statistics.misses, statistics.asked / 2);
  EXPECT_GT(statistics.updated, 0);
  cache.activate("1");  // returns to version 1
  Request request(random);
  request.ask(cache, GetParam(), stream);
  EXPECT_TRUE(request.equals(StoreReading(store.view("ctr"))));
}

TEST_P(StoreCacheTest, AnUpdateWithSeveralRowsOfAKeyKeepsTheLastOne) {
  Store store{StoreOptions{}};
  store.load(cached_model(1));
  StoreCache cache = cache_of(store);
  const Stream stream(GetParam());
  // The update sets each key many times, and kernels write the rows in any order. The last row must win.
  std::vector<int64_t> keys, removed = {10};
  std::vector<float> rows;
  for (int number = 0; number < 50; ++number)
    for (int64_t key = 1; key < 100; ++key) {
      keys.push_back(key);
      rows.insert(rows.end(), 4, static_cast<float>(number));
    }
  const StoreTableUpdate update{.table = "small", .keys = keys, .rows = rows.data(), .removed = removed};
  ASSERT_TRUE(store.apply("ctr", 1, {&update, 1}));
  std::mt19937_64 random(1);
  Request request(random);
  request.keys = {1, 10, 99};
  request.offsets = {0, 1, 2, 3};
  request.ask(cache, GetParam(), stream);
  EXPECT_EQ(request.small, std::vector<float>(12, 49));
  EXPECT_TRUE(request.equals(StoreReading(store.view("ctr"))));
}

// Each update sets all rows of both tables to one number. A result must contain a single number.
TEST_P(StoreCacheTest, AnAnswerIsOfOneUpdateWhileUpdatesRun) {
  Store store{StoreOptions{}};
  store.load(cached_model(1));
  StoreCache cache = cache_of(store);
  std::vector<int64_t> keys;
  for (int64_t key = 1; key < 64; ++key)
    if (key % 9 != 0) keys.push_back(key);
  const auto update = [&](int number) {
    const std::vector<float> wide(keys.size() * 96, static_cast<float>(number)),
        small(keys.size() * 4, static_cast<float>(number));
    const std::vector<StoreTableUpdate> both = {{.table = "wide", .keys = keys, .rows = wide.data()},
                                                {.table = "small", .keys = keys, .rows = small.data()}};
    store.apply("ctr", number, both);
  };
  update(1);
  std::atomic<bool> ends{false};
  std::thread other([&] {
    for (int number = 2; !ends; ++number) update(number);
  });
  const Stream stream(GetParam());
  std::mt19937_64 random(9);
  for (int i = 0; i < 200; ++i) {
    Request request(random);
    for (int64_t& key : request.keys) key = keys[static_cast<size_t>(key) % keys.size()];
    request.offsets.resize(request.keys.size() + 1);
    for (size_t k = 0; k < request.offsets.size(); ++k) request.offsets[k] = static_cast<int64_t>(k);
    request.ask(cache, GetParam(), stream);
    for (const float element : request.wide) EXPECT_EQ(element, request.wide[0]);
    for (const float element : request.small) EXPECT_EQ(element, request.wide[0]);
    if (HasFailure()) break;
  }
  ends = true;
  other.join();
}

TEST_P(StoreCacheTest, AKeyWithoutARowIsAnErrorWhereTheModelSaysSo) {
  Store store{StoreOptions{}};
  store.load(cached_model(1, OnMiss::error));
  StoreCache cache = cache_of(store);
  const Stream stream(GetParam());
  const Buffer there(GetParam(), 2 * 96 * sizeof(float));
  const std::vector<int64_t> good = {3, 4}, bad = {3, 18};
  const auto ask = [&](size_t table, const std::vector<int64_t>& keys) {
    const StoreCache::Part part{.table = table, .keys = keys, .vectors = reinterpret_cast<float*>(there.data())};
    return cache.lookup({&part, 1}, stream.ref().handle);
  };
  for (const size_t table : {0u, 1u})
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(ask(table, good).defaults, 0);
      EXPECT_NE(message_of(Kind::data, [&] { ask(table, bad); }).find("no row of key 18"), std::string::npos);
    }
  EXPECT_NE(message_of(Kind::usage, [&] { ask(2, good); }).find("there is no table 2: model"), std::string::npos);
}

TEST_P(StoreCacheTest, VectorsMayBeInHostMemory) {
  Store store{StoreOptions{}};
  store.load(cached_model(1));
  StoreCache cache = cache_of(store);
  const Stream stream(GetParam());
  std::mt19937_64 random(11);
  for (int round = 0; round < 20; ++round) {
    Request request(random);
    request.wide.assign(request.keys.size() * 100, -1);
    request.small.resize((request.offsets.size() - 1) * 4);
    const std::vector<StoreCache::Part> parts = {
        {.table = 0, .keys = request.keys, .vectors = request.wide.data(), .stride = 100, .vectors_on_host = true},
        {.table = 1,
         .keys = request.keys,
         .offsets = request.offsets,
         .pooling = StoreView::Pooling::sqrtn,
         .vectors = request.small.data(),
         .vectors_on_host = true}};
    cache.lookup(parts, stream.ref().handle);
    std::vector<float> dense;
    for (size_t k = 0; k < request.keys.size(); ++k) {
      const auto row = request.wide.begin() + static_cast<ptrdiff_t>(100 * k);
      dense.insert(dense.end(), row, row + 96);
      EXPECT_EQ(row[99], -1) << "memory between rows is kept";
    }
    request.wide = dense;
    ASSERT_TRUE(request.equals(StoreReading(store.view("ctr"))));
  }
}

TEST_P(StoreCacheTest, MissedKeysGetTheDefaultRowWhereTheOptionsSaySoAndComeInLater) {
  Store store{StoreOptions{}};
  store.load(cached_model(1));
  StoreCache cache = cache_of(store, {.default_on_miss = true});
  const Stream stream(GetParam());
  const std::vector<int64_t> keys = {3, 4, 3};
  std::vector<float> rows(3 * 96);
  const StoreCache::Part part{.table = 0, .keys = keys, .vectors = rows.data(), .vectors_on_host = true};
  const StoreCache::Answer first = cache.lookup({&part, 1}, stream.ref().handle);
  EXPECT_EQ(first.misses, 3);
  EXPECT_EQ(first.defaults, 3);
  EXPECT_EQ(rows, std::vector<float>(3 * 96, 0.0f));
  StoreCache::Answer answer = first;
  for (int i = 0; i < 10000 && answer.defaults > 0; ++i) answer = cache.lookup({&part, 1}, stream.ref().handle);
  EXPECT_EQ(answer.defaults, 0);
  EXPECT_EQ(rows[0], 10003);
  EXPECT_EQ(rows[96], 10004);
  EXPECT_GE(cache.statistics().defaults, 3);
}

TEST_P(StoreCacheTest, CachesMayGoWhileUpdatesRun) {
  Store store{StoreOptions{}};
  store.load(cached_model(1));
  std::atomic<bool> ends{false};
  std::thread other([&] {
    const std::vector<int64_t> keys = {1, 2, 3};
    const std::vector<float> rows(3 * 96, 5);
    for (int number = 2; !ends; ++number) {
      const StoreTableUpdate update{.table = "wide", .keys = keys, .rows = rows.data()};
      store.apply("ctr", number, {&update, 1});
    }
  });
  for (int i = 0; i < 20; ++i) {
    std::optional<StoreCache> cache = cache_of(store);
    std::this_thread::yield();
    EXPECT_EQ(cache->view().version(), "1");
  }
  ends = true;
  other.join();
}

TEST(StoreCacheWithoutAGpu, TheLevelsAnswerWithTheSameRowsAndCounts) {
  Store store{StoreOptions{}};
  store.load(cached_model(1));
  StoreCache levels(store, "ctr", {.gpu = -1}), reference = cache_on(store, "ctr", {.bytes = 64 << 20}, &kCpu);
  EXPECT_EQ(levels.gpu(), -1);
  const std::vector<int64_t> keys = {3, 9, 9, 3, 18}, offsets = {0, 2, 5};  // keys 9 and 18 have no row
  std::vector<float> rows[2], bags[2];
  StoreCache* const caches[2] = {&levels, &reference};
  for (int c = 0; c < 2; ++c) {
    rows[c].resize(5 * 96), bags[c].resize(2 * 4);
    const std::vector<StoreCache::Part> parts = {
        {.table = 0, .keys = keys, .vectors = rows[c].data()},
        {.table = 1, .keys = keys, .offsets = offsets, .vectors = bags[c].data()}};
    EXPECT_EQ(caches[c]->lookup(parts).defaults, 6) << "every occurrence counts";
  }
  EXPECT_EQ(rows[0], rows[1]);
  EXPECT_EQ(bags[0], bags[1]);
  StoreOptions needs_gpu;
  needs_gpu.cache.needs_gpu = true;
  Store demanding(needs_gpu);
  demanding.load(cached_model(1));
  if (find_gpus().count > 0) return;
  EXPECT_NE(message_of(Kind::device, [&] { StoreCache(demanding, "ctr"); }).find("needs a GPU"), std::string::npos);
  EXPECT_EQ(StoreCache(store, "ctr").gpu(), -1);
  EXPECT_NE(message_of(Kind::device, [&] { StoreCache(store, "ctr", {.gpu = 0}); }).find("no GPU 0"),
            std::string::npos);
}

TEST(StoreCacheOfAFollowedDatabase, IsAnErrorBecauseItsRowsWouldBeOld) {
  try {
    rocks_plugin();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const TemporaryFolder folder;
  const auto level = [&](StoreRocksOptions::Opening opening, const std::string& own) {
    return StoreOptions{.levels = {{.kind = StoreLevelOptions::Kind::rocksdb,
                                    .rocksdb = {.folder = folder / "db", .opening = opening, .own_folder = own}}}};
  };
  Store writer(level(StoreRocksOptions::Opening::update, ""));
  writer.load(cached_model(1));
  const Store reader(level(StoreRocksOptions::Opening::follow, folder / "own"));
  EXPECT_NE(message_of(Kind::config, [&] { cache_on(reader, "ctr", {}, &kCpu); }).find("another program changes rows"),
            std::string::npos);
  EXPECT_FALSE(cache_of(reader.view("ctr")).possible);
  EXPECT_TRUE(cache_of(writer.view("ctr")).possible);
  StoreCache levels(reader, "ctr", {.gpu = -1});
  const std::vector<int64_t> keys = {4};
  std::vector<float> row(96);
  const StoreCache::Part part{.keys = keys, .vectors = row.data()};
  levels.lookup({&part, 1});
  EXPECT_EQ(row[0], 10004);
}

TEST(StoreCacheOptions, OutOfRangeValuesAreErrors) {
  for (const StoreCacheOptions& bad :
       {StoreCacheOptions{.bytes = -1}, {.share = 1.5}, {.admit_after = 0}, {.bytes = 1, .share = 0.5}}) {
    StoreOptions options;
    options.cache = bad;
    EXPECT_FALSE(message_of(Kind::usage, [&] { Store store(options); }).empty());
  }
}

TEST(CachePlan, RowsOfEachTableMayBeLimited) {
  const std::vector<CachePlan::Table> tables = {{16, 1000}, {16, 100}, {8, 500}, {16, 2000}};
  const CachePlan by_rows = plan_cache(tables, {.most_rows = 100}, 0), by_share = plan_cache(tables, {.share = 0.5}, 0),
                  all = plan_cache(tables, {.share = 1}, 0);
  EXPECT_EQ(by_rows.pool_of_table, (std::vector<int32_t>{0, 1, 2, 0}));
  EXPECT_EQ(by_rows.pools[0].rows, 200);
  EXPECT_TRUE(by_rows.pools[1].whole);
  EXPECT_EQ(by_rows.pools[2].rows, 100);
  EXPECT_EQ(by_share.pools[0].rows, 500 + 50 + 1000);
  EXPECT_EQ(by_share.pools.size(), 2u);
  for (const CachePoolOptions& pool : all.pools) EXPECT_TRUE(pool.whole);
}

TEST(CachePlan, ManyTablesShareFewPools) {
  std::vector<CachePlan::Table> tables;
  for (int64_t t = 0; t < 600; ++t) tables.push_back({t % 2 == 0 ? 8 : 16, 1000});
  for (const CachePlan& plan : {plan_cache(tables, {.share = 1}, 0), plan_cache(tables, {.bytes = 1 << 30}, 0)}) {
    ASSERT_EQ(plan.pools.size(), 2u);
    for (size_t t = 0; t < tables.size(); ++t) {
      const CachePoolOptions& pool = plan.pools[static_cast<size_t>(plan.pool_of_table[t])];
      EXPECT_EQ(pool.dim, tables[t].dim);
      EXPECT_TRUE(pool.whole);
      EXPECT_GE(pool.rows, 300 * 1000);
    }
  }
}

TEST(CachePlan, SmallTablesAreWholeAndTheOthersShareTheRest) {
  const std::vector<CachePlan::Table> tables = {{16, 1'000'000}, {16, 100}, {128, 10'000'000}, {16, 2'000'000}};
  const auto bytes_of = [](const CachePlan& plan) {
    int64_t bytes = 0;
    for (const CachePoolOptions& pool : plan.pools) bytes += DeviceCache::bytes_of(pool, 1000);
    return bytes;
  };
  for (const int64_t bytes : {int64_t{100} << 20, int64_t{1} << 30, int64_t{4} << 30, int64_t{64} << 30}) {
    const CachePlan plan = plan_cache(tables, ops::CachedType::f32, bytes, 1000);
    EXPECT_LE(bytes_of(plan), bytes);
    EXPECT_GT(bytes_of(plan), bytes < (int64_t{8} << 30) ? bytes / 2 : 0);
    EXPECT_TRUE(plan.pools[static_cast<size_t>(plan.pool_of_table[1])].whole);
    const bool all = bytes > (int64_t{8} << 30);
    EXPECT_EQ(plan.pools[static_cast<size_t>(plan.pool_of_table[2])].whole, all);
    if (!all && bytes < (int64_t{1} << 30)) {
      EXPECT_EQ(plan.pool_of_table[0], plan.pool_of_table[3]) << "tables of one width share a pool";
    }
  }
  EXPECT_NE(
      message_of(Kind::device, [&] { plan_cache(tables, ops::CachedType::f32, 1 << 20, 1000); }).find(" bytes or more"),
      std::string::npos);
}

}  // namespace
}  // namespace hctr::test
