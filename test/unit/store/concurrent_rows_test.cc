#include "store/concurrent_rows.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <map>
#include <random>
#include <thread>

namespace {

using hctr::ConcurrentRows;

std::vector<uint32_t> row_of(int64_t words, uint32_t value) {
  return std::vector<uint32_t>(static_cast<size_t>(words), value);
}

std::vector<uint8_t> find_all(const ConcurrentRows& map, std::span<const int64_t> keys, std::vector<uint32_t>& rows) {
  std::vector<uint8_t> found(keys.size());
  rows.assign(keys.size() * static_cast<size_t>(map.words()), 0);
  map.find({keys}, rows.data(), map.words(), found.data());
  return found;
}

TEST(ConcurrentRows, EveryKeyIsAKey) {
  ConcurrentRows map(3, 0);
  const std::vector<int64_t> keys = {0, -1, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_TRUE(map.put(keys[i], row_of(3, static_cast<uint32_t>(i)).data()));
  std::vector<uint32_t> rows;
  EXPECT_EQ(find_all(map, keys, rows), std::vector<uint8_t>(4, 1));
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(rows[i * 3 + 2], i);
  EXPECT_TRUE(map.remove(keys[2]));
  EXPECT_FALSE(map.remove(keys[2]));
  EXPECT_EQ(find_all(map, keys, rows), (std::vector<uint8_t>{1, 1, 0, 1}));
  EXPECT_EQ(map.size(), 3);
}

TEST(ConcurrentRows, SeveralThreadsMayAddRowsWhileOthersRead) {
  constexpr int64_t kKeys = 60'000, kThreads = 3;
  ConcurrentRows map(4, 0);  // 0 expected rows, so partitions must grow during the test
  std::atomic<bool> done{false};
  std::thread reader([&] {
    std::vector<int64_t> keys;
    for (int64_t key = 0; key < 300; ++key) keys.push_back(key * 199);
    std::vector<uint32_t> rows;
    while (!done) {
      const std::vector<uint8_t> found = find_all(map, keys, rows);
      for (size_t i = 0; i < keys.size() * 4; ++i)
        if (found[i / 4] != 0) {
          ASSERT_EQ(rows[i], static_cast<uint32_t>(keys[i / 4]));
        }
    }
  });
  std::vector<std::thread> writers;
  for (int64_t t = 0; t < kThreads; ++t)
    writers.emplace_back([&, t] {
      for (int64_t first = t * 100; first < kKeys; first += kThreads * 100) {
        std::vector<int64_t> keys;
        std::vector<uint32_t> rows;
        for (int64_t key = first; key < first + 100; ++key) {
          keys.push_back(key);
          rows.insert(rows.end(), 4, static_cast<uint32_t>(key));
        }
        map.put(keys, rows.data());
      }
    });
  for (std::thread& writer : writers) writer.join();
  done = true;
  reader.join();
  EXPECT_EQ(map.size(), kKeys);
  std::vector<int64_t> keys;
  for (int64_t key = -100; key < kKeys + 100; ++key) keys.push_back(key);
  EXPECT_EQ(map.count(keys), kKeys);
}

TEST(ConcurrentRows, IsWhatAPlainMapIsAfterRandomOperations) {
  for (const int64_t words : {1, 2, 7, 16}) {
    ConcurrentRows map(words, words == 7 ? 5000 : 0);
    std::map<int64_t, uint32_t> plain;
    std::mt19937_64 random(static_cast<uint64_t>(words));
    for (uint32_t i = 0; i < 60000; ++i) {
      const auto key = static_cast<int64_t>(random() % 8000) - 4000;
      if (random() % 3 == 0) {
        EXPECT_EQ(map.remove(key), plain.erase(key) > 0);
      } else {
        EXPECT_EQ(map.put(key, row_of(words, i).data()), plain.insert_or_assign(key, i).second);
      }
    }
    EXPECT_EQ(map.size(), static_cast<int64_t>(plain.size()));
    std::vector<int64_t> keys;
    for (int64_t key = -4001; key <= 4000; ++key) keys.push_back(key);
    std::vector<uint32_t> rows;
    const std::vector<uint8_t> found = find_all(map, keys, rows);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto there = plain.find(keys[i]);
      ASSERT_EQ(found[i] != 0, there != plain.end()) << keys[i];
      if (found[i]) {
        ASSERT_EQ(rows[i * static_cast<size_t>(words)], there->second);
      }
    }
    std::map<int64_t, uint32_t> passed;
    map.each([&](std::span<const int64_t> of, std::span<const uint32_t> values) {
      for (size_t i = 0; i < of.size(); ++i) passed[of[i]] = values[(i + 1) * static_cast<size_t>(words) - 1];
    });
    EXPECT_EQ(passed, plain);
  }
}

TEST(ConcurrentRows, TakesAtMostAQuarterMoreThanKeysAndRows) {
  for (const int64_t words : {1, 4, 16})
    for (const int64_t expected : {int64_t{0}, int64_t{40000}}) {
      ConcurrentRows map(words, expected);
      const std::vector<uint32_t> row = row_of(words, 1);
      for (int64_t key = 0; key < 40000; ++key) {
        map.put(key * 977, row.data());
        if (key > 10000 && expected == 0 && key % 1000 == 0) {
          ASSERT_LE(static_cast<double>(map.bytes()), 1.25 * static_cast<double>((key + 1) * (8 + 4 * words)));
        }
      }
      EXPECT_LE(static_cast<double>(map.bytes()), 1.25 * static_cast<double>(40000 * (8 + 4 * words))) << words;
    }
}

TEST(ConcurrentRows, ANewRowInPlaceKeepsTheSize) {
  ConcurrentRows map(2, 1000);
  for (int64_t key = 0; key < 1000; ++key) map.put(key, row_of(2, 1).data());
  for (int64_t key = 1000; key < 3000; ++key) {
    map.put_in_place(key, row_of(2, 2).data());
    ASSERT_TRUE(map.contains(key));
  }
  EXPECT_EQ(map.size(), 1000);
}

TEST(ConcurrentRows, ReadersSeeWholeRowsWhileAWriterAddsChangesAndRemoves) {
  constexpr int64_t kWords = 9, kKeys = 2000;
  ConcurrentRows map(kWords, 0);
  std::atomic<bool> done{false};
  std::atomic<int64_t> torn{0}, lost{0}, backwards{0};
  for (int64_t key = 0; key < kKeys; key += 2) map.put(key, row_of(kWords, 1).data());  // these rows remain
  const auto read = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint32_t> last(kKeys), rows(100 * kWords);
    while (!done.load()) {
      std::vector<int64_t> keys;
      for (int i = 0; i < 100; ++i) keys.push_back(static_cast<int64_t>(random() % kKeys));
      std::vector<uint8_t> found(keys.size());
      map.find({keys}, rows.data(), kWords, found.data());
      for (size_t i = 0; i < keys.size(); ++i) {
        const uint32_t* row = &rows[i * kWords];
        if (!found[i]) {
          lost += keys[i] % 2 == 0;
          continue;
        }
        for (int64_t w = 1; w < kWords; ++w) torn += row[w] != row[0];
        backwards += row[0] < last[static_cast<size_t>(keys[i])];
        last[static_cast<size_t>(keys[i])] = row[0];
      }
    }
  };
  std::thread readers[3] = {std::thread(read, 1), std::thread(read, 2), std::thread(read, 3)};
  std::mt19937_64 random(4);
  for (uint32_t i = 2; i < 40000; ++i) {
    const auto key = static_cast<int64_t>(random() % kKeys);
    if (key % 2 == 1 && random() % 2 == 0)
      map.remove(key);
    else
      map.put(key, row_of(kWords, i).data());
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0);
  EXPECT_EQ(lost.load(), 0);
  EXPECT_EQ(backwards.load(), 0);
}

}  // namespace
