// The message with the keys of a host for an owner on another one: what is read is what was written, in the bytes that
// are promised, and bags are sums of the vectors that are listed for them.
#include "embedding/host_keys.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <tuple>

#include "base/error.h"

namespace hctr::test {
namespace {

/// [rank][column][sample]: the keys of a bag.
using HostBags = std::vector<std::vector<std::vector<std::vector<int64_t>>>>;

/// What ranks pack (ops::pack_keys).
struct PackedRank {
  std::vector<int64_t> keys{};
  std::vector<int32_t> bags{};
};

std::vector<PackedRank> packed(const HostBags& ranks) {
  std::vector<PackedRank> all;
  for (const auto& columns : ranks) {
    PackedRank& of = all.emplace_back();
    int32_t bag = 0;
    for (const auto& samples : columns)
      for (const auto& keys : samples) {
        of.keys.insert(of.keys.end(), keys.begin(), keys.end());
        of.bags.insert(of.bags.end(), keys.size(), bag++);
      }
  }
  return all;
}

HostKeysShape host_shape(const HostBags& ranks, int32_t most_keys, int64_t vector_bytes, bool sums = true) {
  HostKeysShape shape{.ranks = static_cast<int64_t>(ranks.size()),
                      .samples = static_cast<int64_t>(ranks[0][0].size()),
                      .vector_bytes = vector_bytes};
  shape.columns.assign(ranks[0].size(), {.most_keys = most_keys, .sums_of_keys = sums});
  return shape;
}

HostKeys host_keys(const HostKeysShape& shape, const std::vector<PackedRank>& ranks) {
  std::vector<RankKeys> views;
  for (const PackedRank& rank : ranks) views.push_back({rank.keys, rank.bags});
  return {shape, views};
}

/// Keys with a weight that falls with their number. `least`: of a bag.
HostBags some_bags(int64_t ranks, int64_t columns, int64_t samples, int least, int most, int64_t vocabulary) {
  std::mt19937_64 random(5);
  HostBags all(static_cast<size_t>(ranks));
  for (auto& of_rank : all) {
    of_rank.resize(static_cast<size_t>(columns));
    for (auto& column : of_rank) {
      column.resize(static_cast<size_t>(samples));
      for (auto& bag : column)
        for (auto n = least + static_cast<int>(random() % static_cast<uint64_t>(most - least + 1)); n > 0; --n) {
          const double u = static_cast<double>(random() >> 11) / 9007199254740992.0;
          bag.push_back(static_cast<int64_t>(u * u * static_cast<double>(vocabulary)) - 2);
        }
    }
  }
  return all;
}

/// Reads the message again and compares all that both sides compute from it with the bags.
void expect_kept(const HostBags& bags, const HostKeysShape& shape) {
  const std::vector<PackedRank> ranks = packed(bags);
  const HostKeys sent = host_keys(shape, ranks), read = HostKeys::read(shape, sent.message(shape));
  EXPECT_EQ(read.message(shape), sent.message(shape));
  EXPECT_EQ(read.vectors(), sent.vectors());

  std::vector<PackedRank> rebuilt(ranks.size());
  int64_t wrong = 0;
  std::vector<double> values;  // of occurrences: a number for each key and column
  read.for_each(shape.samples, [&](const HostKeys::Occurrence& at) {
    PackedRank& of = rebuilt[static_cast<size_t>(at.rank)];
    of.keys.push_back(at.key);
    of.bags.push_back(static_cast<int32_t>(at.column * shape.samples + at.sample));
    wrong += bags[static_cast<size_t>(at.rank)][static_cast<size_t>(at.column)][static_cast<size_t>(at.sample)].at(
                 static_cast<size_t>(at.in_bag)) != at.key;
    values.push_back(static_cast<double>(at.key * 7 + at.column));
  });
  EXPECT_EQ(wrong, 0);
  for (size_t r = 0; r < ranks.size(); ++r) {
    EXPECT_EQ(rebuilt[r].keys, ranks[r].keys);
    EXPECT_EQ(rebuilt[r].bags, ranks[r].bags);
  }

  // The owner sums occurrences to vectors, and the host sums vectors to bags.
  const auto sums = [](const NumberLists& lists, const std::vector<double>& of) {
    std::vector<double> all;
    for (int64_t i = 0; i < lists.size(); ++i) {
      double& sum = all.emplace_back(0);
      for (int32_t k = lists.offsets[static_cast<size_t>(i)]; k < lists.offsets[static_cast<size_t>(i) + 1]; ++k)
        sum += of.at(static_cast<size_t>(lists.numbers[static_cast<size_t>(k)]));
    }
    return all;
  };
  const std::vector<double> vectors = sums(read.occurrences_of_vectors(), values);
  EXPECT_EQ(static_cast<int64_t>(vectors.size()), sent.vectors());
  const std::vector<NumberLists> of_ranks = sent.vectors_of_bags(shape);
  for (size_t r = 0; r < ranks.size(); ++r) {
    std::vector<double> expected;
    for (size_t c = 0; c < bags[r].size(); ++c)
      for (const auto& bag : bags[r][c])
        if (!bag.empty()) {
          expected.push_back(0);
          for (const int64_t key : bag) expected.back() += static_cast<double>(key * 7 + static_cast<int64_t>(c));
        }
    EXPECT_EQ(sums(of_ranks[r], vectors), expected) << "rank " << r;
  }
}

TEST(HostKeys, AreReadAsTheyWereWritten) {
  for (const auto& [samples, least, most, vocabulary] : {std::tuple{40, 1, 1, 20},
                                                         {40, 0, 1, 20},
                                                         {40, 0, 1, 100000},
                                                         {7, 0, 4, 9},
                                                         {7, 0, 4, 100000},
                                                         {300, 0, 300, 50},
                                                         {300, 5, 5, 70000},
                                                         {40, 0, 0, 1}})
    for (const bool sums : {true, false})
      for (const int64_t vector_bytes : {2, 64}) {
        SCOPED_TRACE(cat(samples, " samples, ", least, "-", most, " of ", vocabulary, " keys"));
        const HostBags bags = some_bags(2, 3, samples, least, most, vocabulary);
        expect_kept(bags, host_shape(bags, std::max(1, most), vector_bytes, sums));
      }
}

TEST(HostKeys, MayBeMoreThanTwoBytesCount) {
  const HostBags bags = some_bags(2, 1, 70000, 1, 1, 1000000);
  const HostKeysShape shape = host_shape(bags, 1, 64);
  const HostKeys keys = host_keys(shape, packed(bags));
  EXPECT_GT(keys.vectors(), 1 << 16);
  EXPECT_LT(keys.vectors(), 140000);
  expect_kept(bags, shape);
  HostBags few(2, {std::vector<std::vector<int64_t>>(70000)});
  few[1][0][69999] = {3};
  expect_kept(few, host_shape(few, 1, 64));
}

TEST(HostKeys, OfFewSamplesAmongManyAreListed) {
  HostBags bags = some_bags(3, 2, 500, 0, 0, 1);
  bags[0][1][7] = {5, -5, 5};
  bags[2][0][499] = {1};
  const HostKeysShape shape = host_shape(bags, 3, 16);
  expect_kept(bags, shape);
  // Two columns; 4 keys, as the one that comes twice has its place in no less than its vector; 2 bytes an occurrence.
  EXPECT_EQ(host_keys(shape, packed(bags)).message(shape).size(), 2u + 3u + 2u);
}

TEST(HostKeys, TakeNoMoreThanTheirBytes) {
  // Every bag has one key, so that nothing says so; 3 keys, 1 byte for each place.
  HostBags bags(2, {std::vector<std::vector<int64_t>>(64)});
  for (size_t b = 0; b < 64; ++b) {
    bags[0][0][b] = {static_cast<int64_t>(b % 3)};
    bags[1][0][b] = {static_cast<int64_t>(b % 2)};
  }
  HostKeysShape shape = host_shape(bags, 1, 64);
  EXPECT_EQ(host_keys(shape, packed(bags)).message(shape).size(), 1u + 3u + 128u / 8u);
  EXPECT_EQ(host_keys(shape, packed(bags)).vectors(), 3);
  // A bit for each bag once one is empty.
  bags[1][0][5].clear();
  EXPECT_EQ(host_keys(shape, packed(bags)).message(shape).size(), 1u + 3u + (128u / 8u + 127u + 7u) / 8u);
  // Keys that are all different have no places.
  for (size_t r = 0; r < 2; ++r)
    for (size_t b = 0; b < 64; ++b) bags[r][0][b] = {static_cast<int64_t>(64 * r + b)};
  EXPECT_EQ(host_keys(shape, packed(bags)).message(shape).size(), 1u + 128u);
  EXPECT_EQ(host_keys(shape, packed(bags)).vectors(), 128);
  // Long bags of few keys: a vector each, unless bags may only be summed by the owner.
  for (size_t r = 0; r < 2; ++r)
    for (size_t b = 0; b < 64; ++b) bags[r][0][b] = {1, 2, 3, 1, 2};
  shape = host_shape(bags, 5, 64);
  EXPECT_EQ(host_keys(shape, packed(bags)).vectors(), 3);
  EXPECT_EQ(host_keys(shape, packed(bags)).message(shape).size(), 1u + 3u + (128u + 5u * 128u) / 8u);
  shape = host_shape(bags, 5, 64, false);
  EXPECT_EQ(host_keys(shape, packed(bags)).vectors(), 128);
}

TEST(HostKeys, OfAnotherShapeAreRefused) {
  const HostBags bags = some_bags(2, 3, 20, 1, 3, 30);
  const HostKeysShape shape = host_shape(bags, 3, 64);
  std::vector<int64_t> message = host_keys(shape, packed(bags)).message(shape);
  message.pop_back();
  EXPECT_THROW(HostKeys::read(shape, message), Error);
  message.resize(2);
  EXPECT_THROW(HostKeys::read(shape, message), Error);
  message.resize(message.size() + 400);
  EXPECT_THROW(HostKeys::read(shape, message), Error);
  EXPECT_THROW(host_keys(host_shape(bags, 1, 64), packed(bags)).message(host_shape(bags, 1, 64)), Error)
      << "bags of more keys than they may have";
}

}  // namespace
}  // namespace hctr::test
