// Loading tables by several threads, and random tables for benchmarks.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "core/base/files.h"
#include "core/base/huge_memory.h"
#include "core/base/thread_pool.h"
#include "formats/model/sparse_reader.h"
#include "hctr/store.h"
#include "store/concurrent_rows.h"
#include "store/store_config.h"
#include "store/table_sources.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

struct LoadedRows {
  std::vector<int64_t> keys;
  std::vector<uint32_t> values;
  bool operator==(const LoadedRows&) const = default;
};

LoadedRows all_of(const ConcurrentRows& map) {
  LoadedRows all;
  map.each([&](std::span<const int64_t> keys, std::span<const uint32_t> rows) {
    all.keys.insert(all.keys.end(), keys.begin(), keys.end());
    all.values.insert(all.values.end(), rows.begin(), rows.end());
  });
  return all;
}

TEST(StoreLoading, RowsPutByThreadsAreInTheSamePlacesAsRowsPutOneAfterAnother) {
  std::mt19937_64 random(1);
  LoadedRows given{{std::numeric_limits<int64_t>::min(), 0, -1}, {}};
  // Many keys occur twice.
  for (int i = 0; i < 60000; ++i) given.keys.push_back(static_cast<int64_t>(random() % 50000) - 25000);
  for (size_t i = 0; i < given.keys.size() * 3; ++i) given.values.push_back(static_cast<uint32_t>(random()));
  for (const int64_t expected : {0, 1000, 50000}) {  // with 0, partitions grow often; with 50000, they never grow
    ConcurrentRows plain(3, expected);
    for (size_t i = 0; i < given.keys.size(); ++i) plain.put(given.keys[i], &given.values[i * 3]);
    for (const int count : {1, 3, 7, 40}) {
      ThreadPool threads(count);
      ConcurrentRows map(3, expected);
      const size_t half = given.keys.size() / 2;
      map.put_all(std::span(given.keys).first(half), given.values.data(), threads);
      map.put_all(std::span(given.keys).subspan(half), &given.values[half * 3], threads);
      EXPECT_EQ(map.size(), plain.size());
      EXPECT_EQ(map.bytes(), plain.bytes());
      EXPECT_EQ(all_of(map), all_of(plain)) << count << " threads, " << expected << " rows expected";
    }
  }
}

TEST(StoreLoading, RowsFoundOrPutByThreadsAreTheFirstOfEachKey) {
  std::mt19937_64 random(2);
  std::vector<int64_t> keys = {std::numeric_limits<int64_t>::min(), 0, -1, std::numeric_limits<int64_t>::min()};
  for (int i = 0; i < 60000; ++i) keys.push_back(static_cast<int64_t>(random() % 50000) - 25000);
  for (const int count : {1, 3, 40}) {
    ThreadPool threads(count);
    ConcurrentRows map(2, 1000);
    std::vector<uint32_t> rows;
    for (size_t i = 0; i < keys.size(); ++i) rows.insert(rows.end(), {static_cast<uint32_t>(i), 5});
    map.find_or_put_all(keys, rows.data(), threads);
    std::map<int64_t, uint32_t> first;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto wanted = first.try_emplace(keys[i], static_cast<uint32_t>(i)).first->second;
      ASSERT_EQ(rows[2 * i], wanted);
      ASSERT_EQ(rows[2 * i + 1], 5u);
    }
    EXPECT_EQ(map.size(), std::ssize(first));
  }
}

/// The rows take about 90 MB, which the map stores in huge pages.
TEST(StoreLoading, ALargeMapKeepsItsRowsWhilePartitionsMoveOutOfItsFirstMemory) {
  constexpr int64_t kWords = 32, kExpected = 600'000, kRows = 700'000;
  ThreadPool threads(3);
  ConcurrentRows map(kWords, kExpected);
  const int64_t before = map.bytes();
  std::vector<int64_t> keys;
  std::vector<uint32_t> rows;
  for (int64_t first = 0; first < kRows; first += 100'000) {
    keys.clear();
    rows.clear();
    for (int64_t key = first; key < first + 100'000; ++key) {
      keys.push_back(key);
      rows.insert(rows.end(), kWords, static_cast<uint32_t>(key));
    }
    map.put_all(keys, rows.data(), threads);
  }
  EXPECT_EQ(map.size(), kRows);
  EXPECT_GT(map.bytes(), before) << "partitions have grown";
  for (int64_t key = 0; key < kRows; key += 2) EXPECT_TRUE(map.remove(key));
  keys.clear();
  for (int64_t key = 0; key < kRows; key += 7) keys.push_back(key);
  rows.assign(keys.size() * kWords, 0);
  std::vector<uint8_t> found(keys.size());
  map.find({keys}, rows.data(), kWords, found.data());
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(found[i], keys[i] % 2) << keys[i];
    for (int64_t w = 0; w < kWords && found[i]; ++w) ASSERT_EQ(rows[i * kWords + static_cast<size_t>(w)], keys[i]);
  }
}

TEST(StoreLoading, ReleasedMemoryIsZeroAndItsNeighboursKeepTheirBytes) {
  constexpr size_t kBytes = size_t{5} << 20;
  const HugeMemory memory(kBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % (size_t{2} << 20), 0u);
  for (size_t i = 0; i < kBytes; ++i) ASSERT_EQ(memory.data()[i], std::byte{0});
  std::fill_n(memory.data(), kBytes, std::byte{7});
  constexpr size_t kFrom = 1'000'001, kCount = 2'000'000;
  memory.release(memory.data() + kFrom, kCount);
  for (size_t i = 0; i < kFrom; ++i) ASSERT_EQ(memory.data()[i], std::byte{7}) << i;
  for (size_t i = kFrom + kCount; i < kBytes; ++i) ASSERT_EQ(memory.data()[i], std::byte{7}) << i;
  EXPECT_EQ(memory.data()[kFrom + kCount / 2], std::byte{0});
}

/// A file of rows with slots, in an order that mixes the slots.
std::map<std::pair<int32_t, int64_t>, float> write_rows(const fs::path& path, size_t rows, int64_t dim) {
  std::map<std::pair<int32_t, int64_t>, float> plain;
  std::mt19937_64 random(7);
  AtomicFile file(path);
  while (plain.size() < rows) {
    const auto key = static_cast<int64_t>(random() % 100'000), slot = static_cast<int64_t>(random() % 5);
    const auto value = static_cast<float>(random() % 1000);
    if (!plain.emplace(std::pair(static_cast<int32_t>(slot), key), value).second) continue;
    const std::vector<float> row(static_cast<size_t>(dim), value);
    file.write(&key, sizeof key);
    file.write(&slot, sizeof slot);
    file.write(row.data(), row.size() * sizeof(float));
  }
  file.commit();
  return plain;
}

TEST(StoreLoading, AFileReadByThreadsHasTheSameRowsInTheSameOrder) {
  const TemporaryFolder folder;
  const fs::path path = folder / "rows.model";
  write_rows(path, 90'000, 30);  // more rows than a block holds
  const auto read = [&](ThreadPool* threads, bool with_vectors) {
    SparseRows all;
    const SparseFileShape shape{.with_slot = true, .dim = 30, .slots = 5, .with_vectors = with_vectors};
    const auto add = [&](const SparseRows& some) {
      all.keys.insert(all.keys.end(), some.keys.begin(), some.keys.end());
      all.slots.insert(all.slots.end(), some.slots.begin(), some.slots.end());
      all.vectors.insert(all.vectors.end(), some.vectors.begin(), some.vectors.end());
      EXPECT_EQ(some.of, 90'000);
    };
    EXPECT_EQ(read_sparse(path, shape, add, Log::silent(), threads), 90'000);
    return all;
  };
  const SparseRows alone = read(nullptr, true);
  ThreadPool threads(5);
  const SparseRows together = read(&threads, true), without = read(&threads, false);
  EXPECT_EQ(together.keys, alone.keys);
  EXPECT_EQ(together.slots, alone.slots);
  EXPECT_EQ(together.vectors, alone.vectors);
  EXPECT_EQ(without.slots, alone.slots);
  EXPECT_TRUE(without.vectors.empty());
}

TEST(StoreLoading, RowsOfMixedSlotsAreFoundInTheirSlots) {
  constexpr int64_t kDim = 4;
  const TemporaryFolder folder;
  const fs::path path = folder / "rows.model";
  const auto plain = write_rows(path, 40'000, kDim);
  const StoreTableSource source{.name = "t", .dim = kDim, .by_slot = true, .model_file = path};
  ThreadPool threads(3);
  std::map<int32_t, int64_t> counts;
  for (const auto& [place, value] : plain) ++counts[place.first];
  EXPECT_EQ(rows_by_slot(source, threads), counts);
  Store store{StoreOptions{}};
  store.load({.name = "m", .version = "1", .tables = {source}});
  EXPECT_EQ(store.tables().at(0).rows, 40'000);
  for (const auto& [place, value] : plain) {
    std::vector<float> row(kDim);
    ASSERT_EQ(store.view("m").get(0, {&place.second, 1}, row.data(), 0, nullptr, place.first), 0);
    ASSERT_EQ(row, std::vector<float>(kDim, value));
  }
}

TEST(StoreLoading, TheFirstNumberThatIsNotFiniteIsNamedWhoeverFindsIt) {
  constexpr size_t kRows = 100'000;
  std::vector<int64_t> keys(kRows);
  std::iota(keys.begin(), keys.end(), 0);
  std::vector<float> rows(kRows * 2, 1);
  rows[2 * 77'777 + 1] = std::numeric_limits<float>::infinity();
  rows[2 * 90'000] = std::numeric_limits<float>::quiet_NaN();
  const StoreTableSource source{.name = "t", .dim = 2, .rows = [&](const StoreRowSink& sink) { sink({}, keys, rows); }};
  for (const int count : {1, 4}) {
    ThreadPool threads(count);
    const std::string message = message_of(Kind::data, [&] { read_table(source, [](auto, auto, auto) {}, threads); });
    EXPECT_NE(message.find("number 1 of the row of key 77777 is inf"), std::string::npos) << message;
  }
}

std::map<int64_t, std::vector<float>> random_table(const std::string& name, int64_t dim, StoreRandomRows random,
                                                   int threads) {
  std::map<int64_t, std::vector<float>> all;
  ThreadPool pool(threads);
  read_table(
      {.name = name, .dim = dim, .random = random},
      [&](std::span<const int32_t>, std::span<const int64_t> keys, std::span<const float> rows) {
        for (size_t i = 0; i < keys.size(); ++i)
          all[keys[i]].assign(rows.begin() + static_cast<int64_t>(i) * dim,
                              rows.begin() + static_cast<int64_t>(i + 1) * dim);
      },
      pool);
  return all;
}

TEST(StoreLoading, ARandomRowIsAFunctionOfSeedTableAndKey) {
  const auto rows = random_table("t", 9, {1000, 5}, 1);
  ASSERT_EQ(rows.size(), 1000u);
  EXPECT_EQ(rows.begin()->first, 0);
  EXPECT_EQ(rows.rbegin()->first, 999);
  EXPECT_EQ(random_table("t", 9, {1000, 5}, 4), rows);
  const auto fewer = random_table("t", 9, {10, 5}, 2);
  for (const auto& [key, row] : fewer) EXPECT_EQ(row, rows.at(key));
  EXPECT_NE(random_table("t", 9, {1000, 6}, 1).at(3), rows.at(3));
  EXPECT_NE(random_table("u", 9, {1000, 5}, 1).at(3), rows.at(3));
  double sum = 0, squares = 0;
  std::set<std::vector<float>> different;
  for (const auto& [key, row] : rows) {
    different.insert(row);
    for (const float value : row) {
      EXPECT_LE(std::abs(value), 1 / 3.0f);
      sum += value, squares += value * value;
    }
  }
  EXPECT_EQ(different.size(), rows.size());
  EXPECT_NEAR(sum / 9000, 0, 0.01);
  EXPECT_NEAR(squares / 9000, 1.0 / 9 / 3, 0.002) << "a third of the bound's square, as for uniform values";
}

TEST(StoreLoading, RandomRowsOfAConfigAreServedAndCountedWithoutBeingMade) {
  const std::string text = R"({"models": [{"name": "m", "tables": [
      {"name": "t", "dim": 4, "random_rows": 3000, "seed": 2}]}]})";
  Store store = open_store("store.json", text);
  const auto rows = random_table("t", 4, {3000, 2}, 2);
  const std::vector<int64_t> keys = {2999, 0, 3000, -1};
  std::vector<float> got(16);
  std::vector<uint8_t> found(4);
  EXPECT_EQ(store.view("m").get(0, keys, got.data(), 0, found.data()), 2);
  EXPECT_EQ(found, (std::vector<uint8_t>{1, 1, 0, 0}));
  EXPECT_EQ(std::vector(got.begin(), got.begin() + 4), rows.at(2999));
  EXPECT_EQ(std::vector(got.begin() + 4, got.begin() + 8), rows.at(0));
  EXPECT_EQ(count_rows({.name = "t", .dim = 1 << 20, .random = {int64_t{1} << 40, 1}}), int64_t{1} << 40);
  const auto problem = [](const std::string& table) {
    std::vector<std::string> notes;
    const std::string json = R"({"models": [{"name": "m", "tables": [{"name": "t", "dim": 4, )" + table + "}]}]}";
    return message_of(Kind::config, [&] { parse_store_config(Json::parse(json, "store.json"), "store.json", notes); });
  };
  EXPECT_NE(problem(R"("seed": 3, "file": "a.parquet")").find("needs \"random_rows\""), std::string::npos);
  EXPECT_NE(problem(R"("random_rows": 3, "by_slot": true)").find("identified by the key alone"), std::string::npos);
  EXPECT_NE(problem(R"("random_rows": 3, "file": "a.parquet")").find("\"random_rows\", or"), std::string::npos);
  EXPECT_NE(problem(R"("random_rows": -3)"), "");
}

}  // namespace
}  // namespace hctr::test
