// Removes rows by key, and reads row gradients before an update.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <thread>
#include <vector>

#include "hctr/embedding.h"
#include "unit/engine/set/rank_runs.h"

namespace hctr::test {
namespace {

using RowMap = std::map<int64_t, std::vector<float>>;

EmbeddingOptions one_table(int64_t most_rows = 0) {
  EmbeddingTableOptions table{.name = "items", .dim = 3};
  if (most_rows > 0) {
    table.most_rows = most_rows;
    table.when_full = EmbeddingTableOptions::WhenFull::evict_lru;
  }
  table.min_count = most_rows > 0 ? 2 : 1;
  return {.tables = {table}, .features = {{"item", "items", Pooling::sum}}, .seed = 5};
}

RowMap rows_of(EmbeddingSet& set) {
  RowMap rows;
  set.export_rows("items", false, [&](const TableRows& block) {
    for (size_t i = 0; i < block.keys.size(); ++i)
      rows[block.keys[i]].assign(block.vectors.begin() + static_cast<ptrdiff_t>(i * 3),
                                 block.vectors.begin() + static_cast<ptrdiff_t>(i * 3 + 3));
  });
  return rows;
}

void train(EmbeddingSet& set, const std::vector<int64_t>& keys) {
  const auto count = static_cast<int64_t>(keys.size());
  std::vector<float> vectors(keys.size() * 3), gradients(keys.size() * 3);
  std::iota(gradients.begin(), gradients.end(), 1.0f);
  const FeatureKeys given{keys.data(), ElementType::i64, count};
  const FeatureVectors<float> to{vectors.data()};
  const FeatureVectors<const float> dy{gradients.data()};
  set.update(set.forward(count, {&given, 1}, {&to, 1}), {&dy, 1}, {.learning_rate = 0.1f});
}

std::vector<int64_t> keys_to(int64_t end) {
  std::vector<int64_t> keys(static_cast<size_t>(end));
  std::iota(keys.begin(), keys.end(), 0);
  return keys;
}

TEST(EmbeddingRemove, RemovedRowsStartAnewAndOthersStay) {
  for (const int64_t most_rows : {0, 4000}) {
    EmbeddingSet set(one_table(most_rows));
    const std::vector<int64_t> keys = keys_to(1000);
    for (int step = 0; step < 3; ++step) train(set, keys);
    RowMap before = rows_of(set);
    ASSERT_EQ(before.size(), 1000u);
    const std::vector<int64_t> gone = {0, 17, 17, 998, 999, 5000, -3};
    EXPECT_EQ(set.remove_rows("items", gone), 4);
    for (const int64_t key : gone) before.erase(key);
    EXPECT_EQ(rows_of(set), before);
    EXPECT_EQ(set.rows("items"), 996);
    for (int step = 0; step < 2; ++step) train(set, {17});
    EXPECT_EQ(rows_of(set).size(), 997u);
    // the row of key 17 must equal that of a new set whose update count starts at 3, because Adam's bias correction
    // uses the count
    if (most_rows == 0) {
      EmbeddingSet later(one_table());
      later.set_updates(3);
      for (int step = 0; step < 2; ++step) train(later, {17});
      EXPECT_EQ(rows_of(set).at(17), rows_of(later).at(17));
    }
    EXPECT_EQ(set.remove_rows("items", keys), 997);
    EXPECT_EQ(set.rows("items"), 0);
  }
}

TEST(EmbeddingRemove, EachRankRemovesItsOwn) {
  auto ranks = EmbeddingRank::of_threads(2);
  std::vector<int64_t> removed(2);
  std::vector<RowMap> rows(2);
  std::vector<std::thread> threads;
  for (size_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r, rank = ranks[r]]() mutable {
      EmbeddingOptions options = one_table();
      options.rank = std::move(rank);
      EmbeddingSet set(options);
      train(set, keys_to(10));
      removed[r] = set.remove_rows("items", std::vector<int64_t>{1, 2, 3, 77});
      rows[r] = rows_of(set);
    });
  ranks.clear();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(removed, (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(rows[0].size(), 7u);
  EXPECT_FALSE(rows[0].contains(2));
}

TEST(EmbeddingRemove, RowNumbersAreRefused) {
  EmbeddingOptions options = one_table();
  options.tables[0].rows = 5;
  EmbeddingSet set(options);
  expect_error_of(Kind::usage, "row numbers", [&] { set.remove_rows("items", std::vector<int64_t>{1}); });
}

TEST(EmbeddingRowGradients, AreReadAndTheUpdateFollows) {
  EmbeddingSet set(one_table()), other(one_table());
  const std::vector<int64_t> keys = {4, 9, 4};
  const std::vector<float> gradients = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<float> vectors(9), sums(9);
  std::vector<int64_t> of(3);
  const FeatureKeys given{keys.data(), ElementType::i64, 3};
  const FeatureVectors<float> to{vectors.data()};
  const FeatureVectors<const float> dy{gradients.data()};
  const RowGradients list{of.data(), sums.data()};
  for (int step = 0; step < 2; ++step) {
    const auto batch = set.forward(3, {&given, 1}, {&to, 1});
    ASSERT_EQ(set.row_gradients(batch, {&dy, 1}, {&list, 1}, false), std::vector<int64_t>{2});
    const size_t four = of[0] == 4 ? 0 : 3;
    EXPECT_EQ(std::vector<float>(sums.begin() + static_cast<ptrdiff_t>(four),
                                 sums.begin() + static_cast<ptrdiff_t>(four) + 3),
              (std::vector<float>{8, 10, 12}));
    set.update(batch, {&dy, 1}, {.learning_rate = 0.1f});
    other.update(other.forward(3, {&given, 1}, {&to, 1}), {&dy, 1}, {.learning_rate = 0.1f});
  }
  EXPECT_EQ(rows_of(set), rows_of(other));
}

}  // namespace
}  // namespace hctr::test
