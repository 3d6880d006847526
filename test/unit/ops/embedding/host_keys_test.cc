// Messages with the keys of a host for an owner rank, on every device. The owner's joined batch equals the batch of all
// ranks, and the messages have the predicted size. Bags are sums of their listed vectors, and gradients arrive at their
// keys.
#include "ops/embedding/host_keys.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <tuple>

#include "core/base/expect.h"
#include "support/values_on_device.h"

namespace hctr::test {
namespace {

/// The keys of each bag: [rank][column][sample].
using BagsOfHost = std::vector<std::vector<std::vector<std::vector<int64_t>>>>;

struct HostRules {
  int32_t most_keys = 1;
  int64_t vector_bytes = 64;
  bool sums_of_keys = true, sums_gradients = false;
};

/// The messages and their arrays on a device.
struct HostMemory {
  HostMemory(Device device, const std::vector<ops::HostColumn>& columns, const std::vector<int32_t>& first,
             int64_t bags, int64_t keys, const HostRules& rules)
      : columns_(device, bytes_of(columns)),
        first_(device, first),
        plans_(device, std::vector<std::byte>(sizeof(ops::HostColumnPlan) * columns.size())),
        offsets(device, zeros(static_cast<int64_t>(columns.size()) * bags + 1)),
        first_keys(device, zeros(keys)),
        places(device, zeros(keys)),
        numbers(device, zeros(static_cast<int64_t>(columns.size()) * bags + 1)),
        sizes(device, zeros(ops::kHostMessageSizes * (static_cast<int64_t>(first.size()) - 1))),
        refused(device, std::vector<int32_t>(first.size() - 1, -1)),
        keys_(device, std::vector<int64_t>(static_cast<size_t>(keys))),
        words(device, std::vector<int64_t>(
                          static_cast<size_t>(ops::most_host_words(static_cast<int64_t>(columns.size()),
                                                                   static_cast<int64_t>(columns.size()) * bags, keys)),
                          -1)),
        scratch(device, std::vector<std::byte>(ops::host_keys_scratch_bytes(
                            device, static_cast<int64_t>(columns.size()) * bags * 4, keys))) {
    all = {.messages = static_cast<int32_t>(first.size()) - 1,
           .columns = static_cast<int32_t>(columns.size()),
           .bags = bags,
           .column = reinterpret_cast<const ops::HostColumn*>(columns_.data()),
           .first = first_.data(),
           .vector_bytes = rules.vector_bytes,
           .sums_gradients = rules.sums_gradients};
  }
  template <class T>
  static std::vector<std::byte> bytes_of(const std::vector<T>& records) {
    const auto* begin = reinterpret_cast<const std::byte*>(records.data());
    return {begin, begin + records.size() * sizeof(T)};
  }
  static std::vector<int32_t> zeros(int64_t count) { return std::vector<int32_t>(static_cast<size_t>(count), 0); }
  ops::HostKeys arrays() const {
    return {offsets.data(),
            keys_.data(),
            first_keys.data(),
            places.data(),
            numbers.data(),
            reinterpret_cast<ops::HostColumnPlan*>(plans_.data()),
            reinterpret_cast<ops::HostMessageSizes*>(sizes.data()),
            refused.data()};
  }
  ops::HostMessageSizes size_of_message(size_t m) const {
    const std::vector<int32_t> all_sizes = sizes.host();
    return {all_sizes[4 * m], all_sizes[4 * m + 1], all_sizes[4 * m + 2], all_sizes[4 * m + 3]};
  }
  Tensor words_tensor() const { return words.tensor({static_cast<int64_t>(words.count)}); }

  ValuesOnDevice<std::byte> columns_;
  ValuesOnDevice<int32_t> first_;
  ValuesOnDevice<std::byte> plans_;
  ValuesOnDevice<int32_t> offsets, first_keys, places, numbers, sizes, refused;
  ValuesOnDevice<int64_t> keys_, words;
  ValuesOnDevice<std::byte> scratch;
  ops::HostMessages all;
};

std::vector<ops::HostColumn> columns_of(const BagsOfHost& host, const HostRules& rules, int32_t message = 0) {
  return std::vector<ops::HostColumn>(host[0].size(), {.message = message,
                                                       .most_keys = rules.most_keys,
                                                       .bags = static_cast<int32_t>(host.size() * host[0][0].size()),
                                                       .sums_of_keys = rules.sums_of_keys});
}

int64_t keys_of(const BagsOfHost& host) {
  int64_t keys = 0;
  for (const auto& rank : host)
    for (const auto& column : rank)
      for (const auto& bag : column) keys += static_cast<int64_t>(bag.size());
  return keys;
}

/// Builds the messages of the gathering rank from the keys of its host.
struct SendingHost {
  SendingHost(Device device, const BagsOfHost& host, const HostRules& rules)
      : memory(device, columns_of(host, rules), {0, static_cast<int32_t>(host[0].size())},
               static_cast<int64_t>(host.size() * host[0][0].size()), keys_of(host), rules) {
    Context ctx(runtime_of(device), runtime_of(device).compute_stream());
    std::vector<int32_t> offsets{0}, bags;
    std::vector<int64_t> keys;
    const size_t columns = host[0].size(), samples = host[0][0].size();
    for (size_t c = 0; c < columns; ++c)
      for (const auto& rank : host)
        for (const auto& bag : rank[c]) {
          keys.insert(keys.end(), bag.begin(), bag.end());
          offsets.push_back(static_cast<int32_t>(keys.size()));
        }
    for (size_t r = 0; r < host.size(); ++r)
      for (size_t c = 0; c < columns; ++c)
        for (size_t s = 0; s < samples; ++s)
          if (!host[r][c][s].empty()) bags.push_back(static_cast<int32_t>((r * samples + s) * columns + c));
    from_host(ctx.stream(), memory.offsets.tensor({static_cast<int64_t>(offsets.size())}), offsets);
    if (!keys.empty()) from_host(ctx.stream(), memory.keys_.tensor({static_cast<int64_t>(keys.size())}), keys);
    ops::plan_host_keys(ctx, memory.all, memory.arrays(), static_cast<int64_t>(keys.size()), memory.scratch.data());
    ops::write_host_keys(ctx, memory.all, memory.arrays(), memory.words_tensor());
    const ValuesOnDevice<int32_t> listed(device, bags), bag_offsets(device, memory.zeros(count_plus_one(bags))),
        bag_vectors(device, memory.zeros(static_cast<int64_t>(keys.size()))), bag_gradients(device, bags),
        own(device, bags);
    ops::list_host_vectors(
        ctx, memory.all, memory.arrays(), {.count = static_cast<int64_t>(bags.size()), .bags = listed.data()},
        {bag_offsets.data(), bag_vectors.data(), bag_gradients.data(), own.data()}, memory.scratch.data());
    sizes = memory.size_of_message(0);
    words = memory.words.host();
    words.resize(static_cast<size_t>(sizes.words));
    of_bags = {bag_offsets.host(), bag_vectors.host()};
    gradients = bag_gradients.host();
  }
  static int64_t count_plus_one(const std::vector<int32_t>& values) { return static_cast<int64_t>(values.size()) + 1; }

  HostMemory memory;
  ops::HostMessageSizes sizes;
  std::vector<int64_t> words;
  struct {
    std::vector<int32_t> offsets, vectors;
  } of_bags;
  std::vector<int32_t> gradients;
};

/// Builds an owner's batch from the messages of several hosts. Ranks are numbered consecutively over all hosts.
struct OwnerOfKeys {
  OwnerOfKeys(Device device, const std::vector<BagsOfHost>& hosts, const std::vector<SendingHost>& senders,
              const HostRules& rules) {
    Context ctx(runtime_of(device), runtime_of(device).compute_stream());
    std::vector<ops::HostColumn> columns;
    std::vector<int32_t> first{0}, sizes;
    std::vector<ops::RankInMessage> of_rank;
    std::vector<int64_t> sent;
    int64_t keys = 0, most_bags = 0;
    for (size_t h = 0; h < hosts.size(); ++h) {
      for (const ops::HostColumn& column : columns_of(hosts[h], rules, static_cast<int32_t>(h)))
        columns.push_back(column);
      first.push_back(static_cast<int32_t>(columns.size()));
      for (size_t r = 0; r < hosts[h].size(); ++r)
        of_rank.push_back({static_cast<int32_t>(h), static_cast<int32_t>(r)});
      keys += keys_of(hosts[h]);
      most_bags = std::max(most_bags, static_cast<int64_t>(hosts[h].size() * hosts[h][0][0].size()));
      const ops::HostMessageSizes& of = senders[h].sizes;
      sizes.insert(sizes.end(), {of.words, of.vectors, of.gradients, of.listed});
      vectors += of.vectors;
      gradients += of.gradients;
      listed += of.listed;
      sent.insert(sent.end(), senders[h].words.begin(), senders[h].words.end());
    }
    const HostMemory memory(device, columns, first, most_bags, keys, rules);
    from_host(ctx.stream(), memory.sizes.tensor({static_cast<int64_t>(sizes.size())}), sizes);
    const ValuesOnDevice<int64_t> words(device, sent);
    const Tensor message = words.tensor({static_cast<int64_t>(sent.size())});
    ops::read_host_keys(ctx, memory.all, memory.arrays(), message, memory.scratch.data());
    const auto samples = static_cast<int64_t>(hosts[0][0][0].size()), ranks = static_cast<int64_t>(of_rank.size()),
               of_owner = static_cast<int64_t>(hosts[0][0].size());
    const ValuesOnDevice<std::byte> rank_list(device, HostMemory::bytes_of(of_rank));
    const ValuesOnDevice<int32_t> joined_offsets(device, HostMemory::zeros(of_owner * ranks * samples + 1)),
        list_offsets(device, HostMemory::zeros(vectors + 1)), list_keys(device, HostMemory::zeros(listed)),
        list_first(device, HostMemory::zeros(vectors)), gradients_of_keys(device, HostMemory::zeros(keys));
    const ValuesOnDevice<int64_t> joined_keys(device, std::vector<int64_t>(static_cast<size_t>(keys)));
    ops::join_host_keys(ctx, memory.all, memory.arrays(), message,
                        {.ranks = ranks,
                         .columns = of_owner,
                         .samples = samples,
                         .of_rank = reinterpret_cast<const ops::RankInMessage*>(rank_list.data())},
                        joined_offsets.tensor({of_owner * ranks * samples + 1}), joined_keys.tensor({keys}),
                        {.vectors = vectors,
                         .offsets = list_offsets.data(),
                         .keys = list_keys.data(),
                         .first = list_first.data(),
                         .gradients = gradients_of_keys.data(),
                         .received = kReceived,
                         .zero = kZero},
                        memory.scratch.data());
    batch_offsets = joined_offsets.host();
    batch_keys = joined_keys.host();
    vector_offsets = list_offsets.host();
    vector_keys = list_keys.host();
    gradient_of_key = gradients_of_keys.host();
    refused = memory.refused.host();
  }
  static constexpr int32_t kReceived = 1000000, kZero = 900000;
  int64_t vectors = 0, gradients = 0, listed = 0;
  std::vector<int32_t> batch_offsets, vector_offsets, vector_keys, gradient_of_key, refused;
  std::vector<int64_t> batch_keys;
};

/// Keys whose frequencies follow a power law. `least`: minimum number of keys per bag.
BagsOfHost some_bags(uint64_t seed, int64_t ranks, int64_t columns, int64_t samples, int least, int most,
                     int64_t vocabulary) {
  std::mt19937_64 random(seed);
  BagsOfHost all(static_cast<size_t>(ranks));
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

/// Sends the keys of all hosts to one owner, and compares the results of both sides with the bags. Values are small
/// integers, so sums are exact.
void expect_kept(Device device, const std::vector<BagsOfHost>& hosts, const HostRules& rules) {
  SCOPED_TRACE(to_string(device));
  std::vector<SendingHost> senders;
  for (const BagsOfHost& host : hosts) senders.emplace_back(device, host, rules);
  const OwnerOfKeys owner(device, hosts, senders, rules);
  const size_t columns = hosts[0][0].size(), samples = hosts[0][0][0].size();
  std::vector<int64_t> keys;
  std::vector<int32_t> offsets{0};
  for (size_t c = 0; c < columns; ++c)
    for (const BagsOfHost& host : hosts)
      for (const auto& rank : host)
        for (const auto& bag : rank[c]) {
          keys.insert(keys.end(), bag.begin(), bag.end());
          offsets.push_back(static_cast<int32_t>(keys.size()));
        }
  EXPECT_EQ(owner.batch_offsets, offsets);
  EXPECT_EQ(owner.batch_keys, keys);

  const auto value = [](int64_t key, size_t column) { return key * 7 + static_cast<int64_t>(column); };
  // `vectors`: the vectors that the owner sends. `values`: the value of each key in the owner's batch.
  std::vector<int64_t> vectors, values;
  const int64_t of_column = static_cast<int64_t>(offsets.size() - 1) / static_cast<int64_t>(columns);
  for (size_t bag = 0; bag + 1 < offsets.size(); ++bag)
    for (int32_t p = offsets[bag]; p < offsets[bag + 1]; ++p)
      values.push_back(value(keys[static_cast<size_t>(p)], bag / static_cast<size_t>(of_column)));
  for (int64_t v = 0; v < owner.vectors; ++v) {
    int64_t& sum = vectors.emplace_back(0);
    for (int32_t k = owner.vector_offsets[static_cast<size_t>(v)]; k < owner.vector_offsets[static_cast<size_t>(v) + 1];
         ++k)
      sum += values.at(static_cast<size_t>(owner.vector_keys.at(static_cast<size_t>(k))));
  }
  EXPECT_EQ(owner.vector_offsets.back(), owner.listed);

  // Gradients: each bag has a distinct value. Each key of a column receives the sum over the bags with this key.
  std::map<std::pair<size_t, int64_t>, int64_t> expected_of_key, of_key;
  std::vector<int64_t> received;
  int64_t first_vector = 0;
  for (size_t h = 0; h < hosts.size(); ++h) {
    const SendingHost& sender = senders[h];
    std::vector<int64_t> sums(static_cast<size_t>(sender.sizes.gradients), 0);
    size_t i = 0;
    for (size_t r = 0; r < hosts[h].size(); ++r)
      for (size_t c = 0; c < columns; ++c)
        for (size_t s = 0; s < samples; ++s) {
          const std::vector<int64_t>& bag = hosts[h][r][c][s];
          if (bag.empty()) continue;
          int64_t expected = 0, sum = 0;
          for (const int64_t key : bag) expected += value(key, c);
          for (int32_t k = sender.of_bags.offsets[i]; k < sender.of_bags.offsets[i + 1]; ++k)
            sum +=
                vectors.at(static_cast<size_t>(first_vector + sender.of_bags.vectors.at(static_cast<size_t>(k)) - 1));
          ASSERT_EQ(sum, expected) << "host " << h << ", rank " << r << ", column " << c << ", sample " << s;
          const auto gradient = static_cast<int64_t>(i * i % 1000) + 1;
          if (rules.sums_gradients)
            for (int32_t k = sender.of_bags.offsets[i]; k < sender.of_bags.offsets[i + 1]; ++k)
              sums.at(static_cast<size_t>(sender.of_bags.vectors.at(static_cast<size_t>(k)) - 1)) += gradient;
          else
            sums.at(static_cast<size_t>(sender.gradients[i] - 1)) += gradient;
          for (const int64_t key : bag) expected_of_key[{c, key}] += gradient;
          ++i;
        }
    received.insert(received.end(), sums.begin(), sums.end());
    first_vector += sender.sizes.vectors;
  }
  for (size_t bag = 0; bag + 1 < offsets.size(); ++bag)
    for (int32_t p = offsets[bag]; p < offsets[bag + 1]; ++p) {
      const size_t c = bag / static_cast<size_t>(of_column);
      const int32_t gradient = owner.gradient_of_key.at(static_cast<size_t>(p));
      of_key[{c, keys[static_cast<size_t>(p)]}] +=
          gradient == OwnerOfKeys::kZero ? 0 : received.at(static_cast<size_t>(gradient - OwnerOfKeys::kReceived));
    }
  EXPECT_EQ(of_key, expected_of_key);
}

TEST(HostKeys, AreReadAsTheyWereWritten) {
  for (const Device device : devices())
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
          const HostRules rules{std::max(1, most), vector_bytes, sums, sums};
          expect_kept(device,
                      {some_bags(5, 2, 3, samples, least, most, vocabulary),
                       some_bags(6, 3, 3, samples, least, most, vocabulary)},
                      rules);
        }
}

TEST(HostKeys, MayBeMoreThanTwoBytesCount) {
  for (const Device device : devices()) {
    const BagsOfHost bags = some_bags(5, 2, 1, 70000, 1, 1, 1000000);
    const HostRules rules{.sums_gradients = true};
    const SendingHost sender(device, bags, rules);
    EXPECT_GT(sender.sizes.vectors, 1 << 16);
    EXPECT_LT(sender.sizes.vectors, 140000);
    EXPECT_EQ(sender.sizes.gradients, sender.sizes.vectors);
    expect_kept(device, {bags}, rules);
    BagsOfHost few(2, {std::vector<std::vector<int64_t>>(70000)});
    few[1][0][69999] = {3};
    expect_kept(device, {few}, rules);
  }
}

TEST(HostKeys, OfFewSamplesAmongManyAreListed) {
  for (const Device device : devices()) {
    BagsOfHost bags = some_bags(5, 3, 2, 500, 0, 0, 1);
    bags[0][1][7] = {5, -5, 5};
    bags[2][0][499] = {1};
    const HostRules rules{3, 16};
    expect_kept(device, {bags}, rules);
    // 2 words for the columns, 3 for the keys, and 2 for 11 bytes: 2 bytes for the bag of each of the 4 occurrences,
    // and 1 byte for the key of each occurrence in the column with the duplicate.
    EXPECT_EQ(SendingHost(device, bags, rules).words.size(), 2u + 3u + 2u);
  }
}

TEST(HostKeys, TakeNoMoreThanTheirBytes) {
  for (const Device device : devices()) {
    const auto sent = [&](const BagsOfHost& bags, const HostRules& rules) {
      const SendingHost sender(device, bags, rules);
      return std::pair{sender.words.size(), sender.sizes.vectors};
    };
    // Every bag has one key, so no bag sizes are sent. The message has 3 keys, and 1 byte per occurrence for the index
    // of its key.
    BagsOfHost bags(2, {std::vector<std::vector<int64_t>>(64)});
    for (size_t b = 0; b < 64; ++b) {
      bags[0][0][b] = {static_cast<int64_t>(b % 3)};
      bags[1][0][b] = {static_cast<int64_t>(b % 2)};
    }
    EXPECT_EQ(sent(bags, {}), std::pair(size_t{1 + 3 + 128 / 8}, 3));
    // If one bag is empty, the message has a bit for each bag.
    bags[1][0][5].clear();
    EXPECT_EQ(sent(bags, {}), std::pair(size_t{1 + 3 + (128 / 8 + 127 + 7) / 8}, 3));
    // If all keys are distinct, the message has no indices.
    for (size_t r = 0; r < 2; ++r)
      for (size_t b = 0; b < 64; ++b) bags[r][0][b] = {static_cast<int64_t>(64 * r + b)};
    EXPECT_EQ(sent(bags, {}), std::pair(size_t{1 + 128}, 128));
    // For long bags of few distinct keys, the message has one vector per key. If only the owner may sum bags, the
    // message has one vector per bag.
    for (size_t r = 0; r < 2; ++r)
      for (size_t b = 0; b < 64; ++b) bags[r][0][b] = {1, 2, 3, 1, 2};
    EXPECT_EQ(sent(bags, {5}), std::pair(size_t{1 + 3 + (128 + 5 * 128) / 8}, 3));
    EXPECT_EQ(sent(bags, {5, 64, false}).second, 128);
  }
}

TEST(HostKeys, GradientsAreAsManyAsKeysOrBags) {
  for (const Device device : devices())
    for (const int most : {1, 3}) {
      const auto sizes = [&](int64_t vocabulary, bool sums) {
        return SendingHost(device, some_bags(5, 2, 2, 100, 1, most, vocabulary),
                           {.most_keys = most, .sums_gradients = sums})
            .sizes;
      };
      EXPECT_LE(sizes(5, true).vectors, 10);
      EXPECT_LE(sizes(5, true).gradients, 10);
      EXPECT_EQ(sizes(5, false).gradients, 400);
      EXPECT_EQ(sizes(1000000000, true).gradients, 400);
    }
}

/// With two gradients per vector, a message with unique keys and indices is smaller, even if few keys occur twice.
TEST(HostKeys, AreUniqueIfThatPaysForGradientsToo) {
  for (const Device device : devices()) {
    BagsOfHost bags(1, {std::vector<std::vector<int64_t>>(400)});
    // 4 keys occur twice
    for (size_t b = 0; b < 400; ++b) bags[0][0][b] = {static_cast<int64_t>(b < 396 ? b : b - 396)};
    EXPECT_EQ(SendingHost(device, bags, {1, 128}).sizes.vectors, 400);
    EXPECT_EQ(SendingHost(device, bags, {1, 128, true, true}).sizes.vectors, 396);
  }
}

/// Changes one word of a message. Then either the owner drops the keys of the message, or the message seems to belong
/// to another batch.
TEST(HostKeys, OfMessagesThatContradictThemselvesAreLeftOut) {
  for (const Device device : devices())
    for (const int most : {1, 3, 300}) {
      const BagsOfHost good = some_bags(5, 2, 3, 60, 0, std::min(most, 5), 30),
                       other = some_bags(6, 1, 3, 60, 0, 1, 30);
      const HostRules rules{most, 64, true, true};
      std::vector<SendingHost> senders;
      senders.emplace_back(device, other, rules);
      senders.emplace_back(device, good, rules);
      senders.emplace_back(device, other, rules);
      const OwnerOfKeys whole(device, {other, good, other}, senders, rules);
      EXPECT_EQ(whole.refused, (std::vector<int32_t>{0, 0, 0}));
      std::mt19937_64 random(3);
      int refused = 0;
      for (int i = 0; i < 24; ++i) {
        SendingHost& damaged = senders[1];
        const SendingHost before = SendingHost(device, good, rules);
        damaged.words = before.words;
        damaged.sizes = before.sizes;
        if (i % 6 == 0) {
          int32_t* const numbers[] = {&damaged.sizes.vectors, &damaged.sizes.gradients, &damaged.sizes.listed};
          *numbers[i / 6 % 3] += 1;
        } else {
          damaged.words[random() % damaged.words.size()] ^= static_cast<int64_t>(random());
        }
        const OwnerOfKeys owner(device, {other, good, other}, senders, rules);
        EXPECT_EQ(owner.refused[0] + owner.refused[2], 0);
        refused += owner.refused[1];
        EXPECT_TRUE(owner.refused[1] == 1 || i % 6 != 0);
        EXPECT_LE(owner.batch_offsets.back(), whole.batch_offsets.back());
        // The bags of the other messages are unchanged.
        for (size_t c = 0; c < 3; ++c)
          for (size_t b = 0; b < 60; ++b)
            for (const size_t rank : {size_t{0}, size_t{3}}) {
              const size_t bag = c * 240 + rank * 60 + b;
              const auto keys_of_bag = [&](const OwnerOfKeys& of) {
                return std::vector<int64_t>(of.batch_keys.begin() + of.batch_offsets[bag],
                                            of.batch_keys.begin() + of.batch_offsets[bag + 1]);
              };
              ASSERT_EQ(keys_of_bag(owner), keys_of_bag(whole)) << "change " << i;
            }
      }
      EXPECT_GE(refused, 8) << "of 24";
    }
}

TEST(HostKeys, OfOtherColumnsAreRefused) {
  for (const Device device : devices()) {
    const BagsOfHost bags = some_bags(5, 2, 3, 20, 1, 3, 30);
    const HostRules rules{3};
    std::vector<SendingHost> senders;
    senders.emplace_back(device, bags, rules);
    const auto refused = [&](const HostRules& read_as) {
      return OwnerOfKeys(device, {bags}, senders, read_as).refused;
    };
    EXPECT_EQ(refused(rules), std::vector<int32_t>{0});
    EXPECT_EQ(refused({1}), std::vector<int32_t>{1});
    --senders[0].sizes.words;
    EXPECT_EQ(refused(rules), std::vector<int32_t>{1});
    senders[0].sizes.words = 2;
    EXPECT_EQ(refused(rules), std::vector<int32_t>{1});
  }
}

}  // namespace
}  // namespace hctr::test
