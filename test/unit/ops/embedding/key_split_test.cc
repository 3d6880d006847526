// Splits keys by owner rank and merges them into a batch again, and exchanges vectors and gradients in parts. Compared
// with plain loops, on every device.
#include "ops/embedding/key_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/device/arena.h"
#include "ops/common/copy.h"
#include "ops/embedding/listed_vectors.h"
#include "ops/embedding/owner_vectors.h"
#include "ops/embedding/wire_keys.h"
#include "support/values_on_device.h"

namespace hctr::test {
namespace {

TEST(RankOfKey, EveryKeyHasOne) {
  for (const int64_t key : {int64_t{0}, int64_t{-1}, int64_t{-3}, INT64_MIN, INT64_MAX}) {
    EXPECT_GE(ops::rank_of_key(key, 3), 0);
    EXPECT_LT(ops::rank_of_key(key, 3), 3);
    int takers = 0;
    for (int32_t rank = 0; rank < 3; ++rank) takers += ops::OwnedColumn{0, rank, 3}.owns(key);
    EXPECT_EQ(takers, 1);
    EXPECT_TRUE((ops::OwnedColumn{0, 2, 1}.owns(key))) << "a whole slot has every key";
  }
  EXPECT_EQ(ops::rank_of_key(-1, 3), 2);
}

/// Reads a tensor of any floating-point type as floats.
std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> out;
  dispatch_float(tensor.dtype(), [&]<class T>() {
    for (const T value : to_host<T>(runtime_of(tensor.device()).compute_stream(), tensor))
      out.push_back(static_cast<float>(value));
  });
  return out;
}

/// A case: the combiner of partial bags, and the dtype of the exchange.
constexpr std::pair<ops::Combiner, DType> kJoins[] = {
    {ops::Combiner::sum, DType::f32}, {ops::Combiner::mean, DType::f32},  {ops::Combiner::mean, DType::f16},
    {ops::Combiner::sum, DType::f16}, {ops::Combiner::mean, DType::bf16}, {ops::Combiner::sum, DType::bf16}};

/// Three ranks, four slots, five samples per rank.
constexpr int kSplitRanks = 3, kSplitSlots = 4, kSplitSamples = 5, kSplitDim = 6;
using Bags = std::vector<std::vector<int64_t>>;  // index: slot * samples + sample

Bags random_bags(std::mt19937_64& random) {
  Bags bags(kSplitSlots * kSplitSamples);
  for (auto& bag : bags)
    for (auto n = random() % 4; n > 0; --n) bag.push_back(static_cast<int64_t>(random() % 50) - 20);
  return bags;
}

/// Owner of a slot that is sharded over all ranks. Other slots have one owner rank.
constexpr int32_t kSpread = -1;
using Owners = std::vector<int32_t>;

struct Split {
  explicit Split(const Owners& of_slots) {
    for (int32_t r = 0; r < kSplitRanks; ++r) {
      ops::OwnerKeys block{static_cast<int32_t>(columns.size()), 0, words, 0};
      for (int32_t s = 0; s < kSplitSlots; ++s)
        if (const int32_t owner = of_slots[static_cast<size_t>(s)]; owner == kSpread || owner == r)
          columns.push_back({s, r, owner == kSpread ? kSplitRanks : 1});
      block.count = static_cast<int32_t>(columns.size()) - block.first;
      block.keys = block.begin + ops::OwnerKeys::offset_words(block.count, kSplitSamples);
      words = block.keys + most(block.count);
      owners.push_back(block);
      for (int32_t c = block.first; c < block.first + block.count; ++c)
        by_owner.push_back({nullptr, block.count, block.first * kSplitSamples + c - block.first});
    }
    for (int32_t s = 0; s < kSplitSlots; ++s) {
      first.push_back(static_cast<int32_t>(remote_columns.size()));
      for (size_t c = 0; c < columns.size(); ++c)
        if (columns[c].column == s) remote_columns.push_back(by_owner[c]);
    }
    first.push_back(static_cast<int32_t>(remote_columns.size()));
  }
  static int64_t most(int64_t columns_of_owner) { return columns_of_owner * kSplitSamples * 3; }
  std::vector<ops::OwnedColumn> columns;
  std::vector<ops::OwnerKeys> owners;
  std::vector<int32_t> first;
  std::vector<ops::RemoteColumn> by_owner, remote_columns;
  int64_t words = 0;
};

/// Device bytes, initialized to 255 to detect missing writes.
struct Marks {
  Marks(Device device, size_t marks)
      : words(device, std::vector<int32_t>(marks / sizeof(int32_t) + 1, -1)), count(marks) {}
  uint8_t* bytes() const { return reinterpret_cast<uint8_t*>(words.data()); }
  std::vector<uint8_t> host() const {
    const std::vector<int32_t> all = words.host();
    const auto* first = reinterpret_cast<const uint8_t*>(all.data());
    return {first, first + count};
  }
  ValuesOnDevice<int32_t> words;
  size_t count;
};

class KeySplit : public testing::TestWithParam<Owners> {
 protected:
  /// The batch of one rank, and the keys that it sends, in device memory.
  struct Sent {
    Sent(Device device, const Split& split, const Bags& bags)
        : keys(device, keys_of(bags)),
          offsets(device, offsets_of(bags)),
          columns(device, words_of(split.columns)),
          owners(device, words_of(split.owners)),
          first(device, split.first),
          present(device, split.columns.size() * kSplitSamples),
          blocks(device, std::vector<int64_t>(static_cast<size_t>(split.words), -1)),
          messages(device, addresses(split)) {
      batch = {keys.data(), offsets.data(), kSplitSlots, kSplitSamples, static_cast<int64_t>(keys.count), kSplitSlots,
               {}};
      key_blocks = {kSplitRanks, static_cast<int32_t>(split.columns.size()),
                    reinterpret_cast<const ops::OwnedColumn*>(columns.data()),
                    reinterpret_cast<const ops::OwnerKeys*>(owners.data())};
      key_blocks.messages = messages.data();
    }
    /// Writes `key_blocks` and `present`.
    void split_keys(Context& ctx) const {
      const ValuesOnDevice<std::byte> scratch(ctx.device(), std::vector<std::byte>(1 << 16));
      ASSERT_LE(scratch_bytes(ctx.device()), scratch.count);
      ops::split_keys(ctx, batch, key_blocks, present.bytes(), scratch.data());
      ctx.stream().synchronize();
    }
    size_t scratch_bytes(Device device) const {
      return ops::key_split_scratch_bytes(device, key_blocks.count * batch.samples, key_blocks.ranks);
    }
    std::vector<int64_t*> addresses(const Split& split) const {
      std::vector<int64_t*> all;
      for (const ops::OwnerKeys& owner : split.owners) all.push_back(blocks.data() + owner.begin);
      return all;
    }
    static std::vector<int64_t> keys_of(const Bags& bags) {
      std::vector<int64_t> all;
      for (const auto& bag : bags) all.insert(all.end(), bag.begin(), bag.end());
      all.resize(bags.size() * 3, 99);
      return all;
    }
    static std::vector<int32_t> offsets_of(const Bags& bags) {
      std::vector<int32_t> all = {0};
      for (const auto& bag : bags) all.push_back(all.back() + static_cast<int32_t>(bag.size()));
      return all;
    }
    template <class T>
    static std::vector<int32_t> words_of(const std::vector<T>& records) {
      const auto* words = reinterpret_cast<const int32_t*>(records.data());
      return {words, words + records.size() * sizeof(T) / sizeof(int32_t)};
    }
    ValuesOnDevice<int64_t> keys;
    ValuesOnDevice<int32_t> offsets, columns, owners, first;
    Marks present;
    mutable std::vector<ValuesOnDevice<std::byte>> places{};
    /// All parts are contiguous in `parts`. If `owner` is given, its part is in `own` instead.
    ops::OwnerVectors vector_blocks(const Split& split, const Tensor& parts, const ops::OwnerKeys* owner = nullptr,
                                    const Tensor* own = nullptr) const {
      ops::OwnerVectors made{.memory = {.dtype = parts.dtype()}, .columns = kSplitSlots, .first = first.data()};
      std::vector<ops::RemoteColumn> list = split.remote_columns;
      const size_t bytes = kSplitDim * size_of(parts.dtype());
      for (ops::RemoteColumn& column : list) {
        const int64_t begin = own ? owner->first * kSplitSamples : 0,
                      end = own ? begin + owner->count * kSplitSamples : 0;
        const bool apart = begin <= column.index && column.index < end;
        column.vector =
            (apart ? own : &parts)->bytes() + static_cast<size_t>(column.index - (apart ? begin : 0)) * bytes;
        made.memory.align(reinterpret_cast<uintptr_t>(column.vector));
      }
      made.memory.align(bytes);
      const auto* begin = reinterpret_cast<const std::byte*>(list.data());
      places.emplace_back(first.buffer.device(),
                          std::vector<std::byte>(begin, begin + list.size() * sizeof(ops::RemoteColumn)));
      made.remote_columns = reinterpret_cast<const ops::RemoteColumn*>(places.back().data());
      return made;
    }
    ValuesOnDevice<int64_t> blocks;
    ValuesOnDevice<int64_t*> messages;
    ops::KeyBatch batch;
    ops::KeySplit key_blocks;
  };
};

TEST_P(KeySplit, WhatAnOwnerMergesIsItsKeysOfAllSamplesInOrder) {
  const Split split(GetParam());
  for (const Device device : devices()) {
    Context ctx(runtime_of(device), runtime_of(device).compute_stream());
    std::mt19937_64 random(3);
    std::vector<Bags> bags;
    std::vector<std::vector<int64_t>> sent;
    for (int rank = 0; rank < kSplitRanks; ++rank) {
      bags.push_back(random_bags(random));
      const Sent one(device, split, bags.back());
      one.split_keys(ctx);
      sent.push_back(one.blocks.host());
      const std::vector<uint8_t> present = one.present.host();
      for (size_t c = 0; c < split.columns.size(); ++c)
        for (int64_t b = 0; b < kSplitSamples; ++b) {
          const auto* offset = reinterpret_cast<const int32_t*>(
              &sent.back()[static_cast<size_t>(split.owners[static_cast<size_t>(split.columns[c].owner)].begin)]);
          const int64_t bag =
              (static_cast<int64_t>(c) - split.owners[static_cast<size_t>(split.columns[c].owner)].first) *
                  kSplitSamples +
              b;
          EXPECT_EQ(present[static_cast<size_t>(split.by_owner[c].index + b * split.by_owner[c].stride)],
                    offset[bag + 1] > offset[bag])
              << "column " << c << ", sample " << b;
        }
    }
    for (int owner = 0; owner < kSplitRanks; ++owner) {
      const ops::OwnerKeys& block = split.owners[static_cast<size_t>(owner)];
      const int64_t words = block.keys - block.begin + Split::most(block.count);
      std::vector<int64_t> received;
      for (const auto& from : sent)
        received.insert(received.end(), from.begin() + block.begin, from.begin() + block.begin + words);
      const ValuesOnDevice<int64_t> blocks(device, received),
          keys(device, std::vector<int64_t>(static_cast<size_t>(kSplitRanks * Split::most(block.count))));
      const ValuesOnDevice<int32_t> offsets(
          device, std::vector<int32_t>(static_cast<size_t>(block.count * kSplitRanks * kSplitSamples + 1), -1));
      ops::merge_keys(ctx, {kSplitRanks, block.count, kSplitSamples, words}, blocks.tensor({kSplitRanks * words}),
                      offsets.tensor({block.count * kSplitRanks * kSplitSamples + 1}),
                      keys.tensor({static_cast<int64_t>(keys.count)}));
      std::vector<int64_t> expected_keys;
      std::vector<int32_t> expected_offsets = {0};
      for (int32_t c = block.first; c < block.first + block.count; ++c)
        for (const Bags& of_rank : bags)
          for (int b = 0; b < kSplitSamples; ++b) {
            const ops::OwnedColumn column = split.columns[static_cast<size_t>(c)];
            const bool whole = GetParam()[static_cast<size_t>(column.column)] != kSpread;
            for (const int64_t key : of_rank[static_cast<size_t>(column.column * kSplitSamples + b)])
              if (whole || (key % kSplitRanks + kSplitRanks) % kSplitRanks == owner) expected_keys.push_back(key);
            expected_offsets.push_back(static_cast<int32_t>(expected_keys.size()));
          }
      EXPECT_EQ(offsets.host(), expected_offsets) << "owner " << owner << " on " << to_string(device);
      std::vector<int64_t> got = keys.host();
      got.resize(expected_keys.size());
      EXPECT_EQ(got, expected_keys) << "owner " << owner << " on " << to_string(device);
    }
  }
}

TEST_P(KeySplit, NoMessageIsWrittenAfterAnAbort) {
  const Split split(GetParam());
  std::mt19937_64 random(9);
  const Bags bags = random_bags(random);
  for (const Device device : devices())
    for (const uint32_t aborted : {0u, 1u}) {
      Context ctx(runtime_of(device), runtime_of(device).compute_stream());
      Sent one(device, split, bags);
      const ValuesOnDevice<uint32_t> state(device, std::vector<uint32_t>{aborted});
      one.key_blocks.aborted = state.data();
      one.split_keys(ctx);
      const std::vector<int64_t> words = one.blocks.host();
      EXPECT_EQ(std::count(words.begin(), words.end(), -1) == split.words, aborted != 0) << to_string(device);
    }
}

TEST_P(KeySplit, PackedKeysMergeToTheSameBatchAndListItsVectors) {
  const Split split(GetParam());
  for (const Device device : devices()) {
    SCOPED_TRACE(to_string(device));
    Context ctx(runtime_of(device), runtime_of(device).compute_stream());
    std::mt19937_64 random(3);
    const ValuesOnDevice<std::byte> scratch(device, std::vector<std::byte>(1 << 16));
    ASSERT_LE(ops::packed_keys_scratch_bytes(device, kSplitRanks * kSplitSlots * kSplitSamples), size_t{1} << 16);
    struct FromRank {
      std::vector<int64_t> words, keys;
      std::vector<int32_t> bags, counts;
    };
    std::vector<FromRank> sent;
    constexpr int64_t kMostKeys = kSplitSlots * kSplitSamples * 3;
    for (int rank = 0; rank < kSplitRanks; ++rank) {
      const Bags bags = random_bags(random);
      const Sent one(device, split, bags), other(device, split, bags);
      one.split_keys(ctx);
      const ValuesOnDevice<int64_t> keys(device, std::vector<int64_t>(kMostKeys));
      const ValuesOnDevice<int32_t> of_bags(device, std::vector<int32_t>(kMostKeys)),
          counts(device, std::vector<int32_t>(2 * kSplitRanks)),
          vectors(device, std::vector<int32_t>(split.columns.size() * kSplitSamples));
      ops::pack_keys(ctx, other.batch, other.key_blocks, {keys.data(), of_bags.data()}, other.present.bytes(),
                     vectors.data(), counts.tensor({2 * kSplitRanks}), scratch.data());
      const std::vector<uint8_t> present = one.present.host();
      EXPECT_EQ(other.present.host(), present);
      sent.push_back({one.blocks.host(), keys.host(), of_bags.host(), counts.host()});
      int32_t listed = 0;
      for (int owner = 0; owner < kSplitRanks; ++owner)
        listed += sent.back().counts[static_cast<size_t>(2 * owner) + 1];
      EXPECT_EQ(listed, std::count(present.begin(), present.end(), 1));
      const std::vector<int32_t> list = vectors.host();
      for (int32_t i = 0; i < listed; ++i)
        EXPECT_EQ(present[static_cast<size_t>(list[static_cast<size_t>(i)])], 1) << "vector " << i;
    }
    for (int owner = 0; owner < kSplitRanks; ++owner) {
      const ops::OwnerKeys& block = split.owners[static_cast<size_t>(owner)];
      const int64_t words = block.keys - block.begin + Split::most(block.count),
                    bags = block.count * kSplitRanks * kSplitSamples;
      std::vector<int64_t> messages, packed;
      std::vector<int32_t> packed_bags, first = {0};
      int32_t listed = 0;
      for (const FromRank& from : sent) {
        messages.insert(messages.end(), from.words.begin() + block.begin, from.words.begin() + block.begin + words);
        int64_t begin = 0;
        for (int before = 0; before < owner; ++before) begin += from.counts[static_cast<size_t>(2 * before)];
        const int32_t count = from.counts[static_cast<size_t>(2 * owner)];
        packed.insert(packed.end(), from.keys.begin() + begin, from.keys.begin() + begin + count);
        packed_bags.insert(packed_bags.end(), from.bags.begin() + begin, from.bags.begin() + begin + count);
        first.push_back(first.back() + count);
        listed += from.counts[static_cast<size_t>(2 * owner) + 1];
      }
      const ValuesOnDevice<int64_t> blocks(device, messages), received(device, packed),
          keys(device, std::vector<int64_t>(static_cast<size_t>(kSplitRanks * Split::most(block.count)))),
          merged(device, std::vector<int64_t>(keys.count));
      const ValuesOnDevice<int32_t> received_bags(device, packed_bags), begins(device, first),
          offsets(device, std::vector<int32_t>(static_cast<size_t>(bags + 1))),
          merged_offsets(device, std::vector<int32_t>(offsets.count)),
          vectors(device, std::vector<int32_t>(static_cast<size_t>(bags)));
      const auto all = static_cast<int64_t>(keys.count);
      ops::merge_keys(ctx, {kSplitRanks, block.count, kSplitSamples, words}, blocks.tensor({kSplitRanks * words}),
                      offsets.tensor({bags + 1}), keys.tensor({all}));
      ops::merge_packed_keys(ctx, {kSplitRanks, block.count, kSplitSamples, 0}, {received.data(), received_bags.data()},
                             begins.data(), block.first * kSplitSamples, merged_offsets.tensor({bags + 1}),
                             merged.tensor({all}), vectors.data(), scratch.data());
      const std::vector<int32_t> at = offsets.host();
      EXPECT_EQ(merged_offsets.host(), at) << "owner " << owner;
      std::vector<int64_t> expected = keys.host(), got = merged.host();
      expected.resize(static_cast<size_t>(at.back()));
      got.resize(expected.size());
      EXPECT_EQ(got, expected) << "owner " << owner;
      std::vector<int32_t> list;  // sorted by rank, column and sample
      for (int32_t r = 0; r < kSplitRanks; ++r)
        for (int32_t c = 0; c < block.count; ++c)
          for (int32_t b = r * kSplitSamples; b < (r + 1) * kSplitSamples; ++b)
            if (const auto bag = static_cast<size_t>(c * kSplitRanks * kSplitSamples + b); at[bag] < at[bag + 1])
              list.push_back(b * block.count + c);
      std::vector<int32_t> lists = vectors.host();
      ASSERT_EQ(static_cast<size_t>(listed), list.size());
      lists.resize(list.size());
      EXPECT_EQ(lists, list) << "owner " << owner;
    }
  }
}

TEST(ListedVectors, AreCopiedToTheirPlaces) {
  for (const Device device : devices())
    for (const size_t bytes : std::initializer_list<size_t>{2, 4, 10, 16, 24, 256}) {
      SCOPED_TRACE(cat(bytes, " bytes on ", to_string(device)));
      Context ctx(runtime_of(device), runtime_of(device).compute_stream());
      std::vector<uint8_t> values(7 * bytes);
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i * 13 + 1);
      const ValuesOnDevice<uint8_t> from(device, values), packed(device, std::vector<uint8_t>(3 * bytes)),
          to(device, std::vector<uint8_t>(values.size()));
      const ValuesOnDevice<int32_t> list(device, {5, 0, 3});
      const auto at = [](const ValuesOnDevice<uint8_t>& memory) { return memory.buffer.data(); };
      ops::copy_listed(ctx, {at(from), list.data()}, {at(packed)}, 3, static_cast<int64_t>(bytes));
      ops::copy_listed(ctx, {at(packed)}, {at(to), list.data()}, 3, static_cast<int64_t>(bytes));
      std::vector<uint8_t> expected(values.size());
      for (const size_t v : {size_t{5}, size_t{0}, size_t{3}})
        std::copy_n(&values[v * bytes], bytes, &expected[v * bytes]);
      std::vector<uint8_t> got(values.size());
      copy_bytes(ctx.stream(), got.data(), to.buffer.data(), got.size());
      ctx.stream().synchronize();
      EXPECT_EQ(got, expected);
    }
}

TEST_P(KeySplit, PiecesOfVectorsAreColumns) {
  // The same memory can be read as slots, or as twice as many slots of half the size. The two slots of half the size
  // are the pieces of one vector, and each piece has the weight of the whole slot.
  const Split split(GetParam());
  const int64_t elements = kSplitSamples * kSplitSlots * kSplitDim,
                part_elements = static_cast<int64_t>(split.remote_columns.size()) * kSplitSamples * kSplitDim;
  std::mt19937_64 random(7);
  const Bags bags = random_bags(random), whole(bags.begin(), bags.begin() + kSplitSlots / 2 * kSplitSamples);
  Bags twice(bags.size());
  for (size_t i = 0; i < twice.size(); ++i)
    twice[i] = whole[i / (2 * kSplitSamples) * kSplitSamples + i % kSplitSamples];
  std::vector<float> part_values, dy_values;
  for (int64_t i = 0; i < part_elements; ++i) part_values.push_back(static_cast<float>(random() % 1000) / 64 - 7);
  for (int64_t i = 0; i < elements; ++i) dy_values.push_back(static_cast<float>(random() % 1000) / 64 - 7);
  for (const Device device : devices()) {
    Context ctx(runtime_of(device), runtime_of(device).compute_stream());
    const auto run = [&](const Bags& of, int64_t pieces) {
      const Sent one(device, split, of);
      ops::KeyBatch batch = one.batch;
      batch.slots = batch.columns = kSplitSlots / pieces;
      const ValuesOnDevice<float> parts(device, part_values), y(device, std::vector<float>(dy_values.size(), NAN)),
          dy(device, dy_values), back(device, std::vector<float>(part_values.size(), NAN));
      ops::OwnerVectors there = one.vector_blocks(split, parts.tensor({part_elements})),
                        home = one.vector_blocks(split, back.tensor({part_elements}));
      there.pieces = home.pieces = pieces;
      const Shape shape = {kSplitSamples, kSplitSlots / pieces, kSplitDim * pieces};
      ops::join_vectors(ctx, batch, there, ops::Combiner::mean, y.tensor(shape));
      ops::split_gradients(ctx, batch, home, ops::Combiner::mean, dy.tensor(shape), {});
      return std::pair(y.host(), back.host());
    };
    EXPECT_EQ(run(whole, 2), run(twice, 1)) << to_string(device);
  }
}

TEST_P(KeySplit, VectorsThatAnOwnerHasNoKeyOfAreNeitherReadNorWritten) {
  const Split split(GetParam());
  const auto vectors = static_cast<int64_t>(split.remote_columns.size()) * kSplitSamples;
  std::mt19937_64 random(9);
  const Bags bags = random_bags(random);
  for (const Device device : devices()) {
    Context ctx(runtime_of(device), runtime_of(device).compute_stream());
    const Sent one(device, split, bags);
    one.split_keys(ctx);
    const std::vector<uint8_t> present = one.present.host();
    std::vector<float> holes, filled;
    for (int64_t i = 0; i < vectors * kSplitDim; ++i) {
      const bool there = present[static_cast<size_t>(i / kSplitDim)] != 0;
      filled.push_back(there ? static_cast<float>(i % 31) : 0);
      holes.push_back(there ? filled.back() : NAN);
    }
    const ValuesOnDevice<float> all(device, filled), some(device, holes),
        dy(device, std::vector<float>(kSplitSamples * kSplitSlots * kSplitDim, 2)),
        back(device, std::vector<float>(holes.size(), NAN));
    const auto joined = [&](const ValuesOnDevice<float>& parts, const uint8_t* marks) {
      ops::OwnerVectors blocks = one.vector_blocks(split, parts.tensor({vectors * kSplitDim}));
      blocks.present = marks;
      const ValuesOnDevice<float> y(device, std::vector<float>(kSplitSamples * kSplitSlots * kSplitDim, NAN));
      ops::join_vectors(ctx, one.batch, blocks, ops::Combiner::sum, y.tensor({kSplitSamples, kSplitSlots, kSplitDim}));
      return y.host();
    };
    EXPECT_EQ(joined(some, one.present.bytes()), joined(all, nullptr)) << to_string(device);
    ops::OwnerVectors blocks = one.vector_blocks(split, back.tensor({vectors * kSplitDim}));
    blocks.present = one.present.bytes();
    ops::split_gradients(ctx, one.batch, blocks, ops::Combiner::sum, dy.tensor({kSplitSamples, kSplitSlots, kSplitDim}),
                         {});
    const std::vector<float> got = back.host();
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(std::isnan(got[i]), present[i / kSplitDim] == 0) << i << " on " << to_string(device);
  }
}

TEST_P(KeySplit, VectorsAreAddedToWhatIsThereWhereAnOwnerHasAKey) {
  const Split split(GetParam());
  const auto vectors = static_cast<int64_t>(split.remote_columns.size()) * kSplitSamples;
  std::mt19937_64 random(9);
  const Bags bags = random_bags(random);
  const Shape shape = {kSplitSamples, kSplitSlots, kSplitDim};
  for (const Device device : devices()) {
    Context ctx(runtime_of(device), runtime_of(device).compute_stream());
    const Sent one(device, split, bags);
    one.split_keys(ctx);
    std::vector<float> values, before;
    for (int64_t i = 0; i < vectors * kSplitDim; ++i) values.push_back(static_cast<float>(1 + i % 31));
    for (int64_t i = 0; i < kSplitSamples * kSplitSlots * kSplitDim; ++i)
      before.push_back(static_cast<float>(i % 17) - 8);
    const ValuesOnDevice<float> parts(device, values), joined(device, before), added(device, before);
    ops::OwnerVectors blocks = one.vector_blocks(split, parts.tensor({vectors * kSplitDim}));
    blocks.present = one.present.bytes();
    ops::join_vectors(ctx, one.batch, blocks, ops::Combiner::mean, joined.tensor(shape));
    ops::add_joined_vectors(ctx, one.batch, blocks, ops::Combiner::mean, added.tensor(shape));
    const std::vector<float> alone = joined.host(), sum = added.host();
    for (size_t i = 0; i < sum.size(); ++i)
      ASSERT_NEAR(sum[i], before[i] + alone[i], 1e-5) << i << " on " << to_string(device);

    // If no owner has a key of the bag, the vector is not written.
    const ValuesOnDevice<float> nowhere(device, std::vector<float>(before.size(), NAN));
    const ValuesOnDevice<uint8_t> none(device, std::vector<uint8_t>(static_cast<size_t>(vectors), 0));
    blocks.present = none.data();
    ops::add_joined_vectors(ctx, one.batch, blocks, ops::Combiner::mean, nowhere.tensor(shape));
    for (const float value : nowhere.host()) ASSERT_TRUE(std::isnan(value));
  }
}

TEST_P(KeySplit, AllGradientsAreSearchedForOverflowAlsoThoseThatNoOwnerGets) {
  const Split split(GetParam());
  const auto vectors = static_cast<int64_t>(split.remote_columns.size()) * kSplitSamples;
  std::mt19937_64 random(9);
  const Bags bags = random_bags(random);
  for (const Device device : devices()) {
    Context ctx(runtime_of(device), runtime_of(device).compute_stream());
    const Sent one(device, split, bags);
    const ValuesOnDevice<uint8_t> none(device, std::vector<uint8_t>(static_cast<size_t>(vectors), 0));
    const ValuesOnDevice<float> back(device, std::vector<float>(static_cast<size_t>(vectors * kSplitDim)));
    ops::OwnerVectors blocks = one.vector_blocks(split, back.tensor({vectors * kSplitDim}));
    blocks.present = none.data();
    const auto found = [&](size_t at, float value) {
      std::vector<float> gradient(kSplitSamples * kSplitSlots * kSplitDim, 3.0f);
      gradient[at] = value;
      const ValuesOnDevice<float> dy(device, gradient), flag(device, std::vector<float>{0});
      ops::split_gradients(ctx, one.batch, blocks, ops::Combiner::mean,
                           dy.tensor({kSplitSamples, kSplitSlots, kSplitDim}), {100, flag.data()});
      return flag.host()[0];
    };
    for (const size_t at : {size_t{0}, size_t{7}, static_cast<size_t>(kSplitSamples * kSplitSlots * kSplitDim - 1)}) {
      EXPECT_EQ(found(at, 100), 0) << to_string(device);
      for (const float value : {101.0f, -101.0f, INFINITY, NAN})
        EXPECT_EQ(found(at, value), 1) << value << " at " << at << " on " << to_string(device);
    }
  }
}

TEST_P(KeySplit, NothingIsWrittenAfterAnAbortButAllIsSearched) {
  const Split split(GetParam());
  const auto vectors = static_cast<int64_t>(split.remote_columns.size()) * kSplitSamples;
  std::mt19937_64 random(9);
  const Bags bags = random_bags(random);
  std::vector<float> gradient(kSplitSamples * kSplitSlots * kSplitDim, 3.0f);
  gradient.back() = INFINITY;
  for (const Device device : devices())
    for (const uint32_t aborted : {0u, 1u}) {
      Context ctx(runtime_of(device), runtime_of(device).compute_stream());
      const Sent one(device, split, bags);
      const ValuesOnDevice<float> back(device, std::vector<float>(static_cast<size_t>(vectors * kSplitDim), -1)),
          dy(device, gradient), flag(device, std::vector<float>{0});
      const ValuesOnDevice<uint32_t> state(device, std::vector<uint32_t>{aborted});
      ops::OwnerVectors blocks = one.vector_blocks(split, back.tensor({vectors * kSplitDim}));
      blocks.memory.aborted = state.data();
      ops::split_gradients(ctx, one.batch, blocks, ops::Combiner::sum,
                           dy.tensor({kSplitSamples, kSplitSlots, kSplitDim}), {100, flag.data()});
      const std::vector<float> got = back.host();
      EXPECT_EQ(std::count(got.begin(), got.end(), -1), aborted ? vectors * kSplitDim : 0) << to_string(device);
      EXPECT_EQ(flag.host()[0], 1) << to_string(device);
    }
}

TEST_P(KeySplit, WhatARankHasForItselfMayLieApart) {
  const Split split(GetParam());
  const int64_t vectors = static_cast<int64_t>(split.remote_columns.size()) * kSplitSamples;
  std::mt19937_64 random(11);
  const Bags bags = random_bags(random);
  std::vector<float> values, dy_values;
  for (int64_t i = 0; i < vectors * kSplitDim; ++i) values.push_back(static_cast<float>(random() % 1000) / 64 - 7);
  for (int64_t i = 0; i < kSplitSamples * kSplitSlots * kSplitDim; ++i)
    dy_values.push_back(static_cast<float>(random() % 1000) / 64 - 7);
  const Shape shape = {kSplitSamples, kSplitSlots, kSplitDim};
  for (const Device device : devices())
    for (const ops::OwnerKeys& owner : split.owners) {
      Context ctx(runtime_of(device), runtime_of(device).compute_stream());
      const Sent one(device, split, bags);
      const auto run = [&](bool apart) {
        const auto begin = values.begin() + owner.first * kSplitSamples * kSplitDim,
                   end = begin + owner.count * kSplitSamples * kSplitDim;
        std::vector<float> others = values;
        if (apart) std::fill_n(others.begin() + (begin - values.begin()), end - begin, NAN);
        std::vector<float> mine(begin, end);
        mine.push_back(0);  // keeps the buffer non-empty, because an owner may have no part
        const ValuesOnDevice<float> parts(device, others), own(device, mine), dy(device, dy_values),
            y(device, std::vector<float>(dy_values.size(), NAN)), back(device, std::vector<float>(values.size(), NAN)),
            own_back(device, std::vector<float>(mine.size(), NAN));
        const Tensor from = own.tensor({static_cast<int64_t>(mine.size())}),
                     to = own_back.tensor({static_cast<int64_t>(mine.size())});
        ops::join_vectors(
            ctx, one.batch,
            one.vector_blocks(split, parts.tensor({vectors * kSplitDim}), &owner, apart ? &from : nullptr),
            ops::Combiner::mean, y.tensor(shape));
        ops::split_gradients(
            ctx, one.batch, one.vector_blocks(split, back.tensor({vectors * kSplitDim}), &owner, apart ? &to : nullptr),
            ops::Combiner::mean, dy.tensor(shape), {});
        std::vector<float> got_back = back.host(), apart_back = own_back.host();
        for (int64_t i = 0; i < end - begin && apart; ++i) {
          float& in_parts = got_back[static_cast<size_t>(begin - values.begin() + i)];
          EXPECT_TRUE(std::isnan(in_parts));
          in_parts = apart_back[static_cast<size_t>(i)];
        }
        return std::pair(y.host(), got_back);
      };
      EXPECT_EQ(run(true), run(false)) << to_string(device);
    }
}

TEST_P(KeySplit, VectorsAreTheSumOfTheOwnersPartsAndGradientsGoTheSameWayBack) {
  const Split split(GetParam());
  const int64_t elements = kSplitSamples * kSplitSlots * kSplitDim,
                part_elements = static_cast<int64_t>(split.remote_columns.size()) * kSplitSamples * kSplitDim;
  std::mt19937_64 random(5);
  const Bags bags = random_bags(random);
  std::vector<float> part_values, dy_values;
  for (int64_t i = 0; i < part_elements; ++i) part_values.push_back(static_cast<float>(random() % 1000) / 64 - 7);
  for (int64_t i = 0; i < elements; ++i) dy_values.push_back(static_cast<float>(random() % 1000) / 64 - 7);
  // If parts have plain addresses, the vectors of owner r are contiguous, with shape [samples, columns of r, dim].
  const auto at = [&](int32_t c, int64_t b) {
    const ops::OwnerKeys& block = split.owners[static_cast<size_t>(split.columns[static_cast<size_t>(c)].owner)];
    return static_cast<size_t>((block.first * kSplitSamples + b * block.count + c - block.first) * kSplitDim);
  };
  for (const Device device : devices())
    for (const auto& [combiner, dtype] : kJoins) {
      Context ctx(runtime_of(device), runtime_of(device).compute_stream());
      const Sent one(device, split, bags);
      const ValuesOnDevice<float> parts(device, part_values), y(device, std::vector<float>(dy_values.size(), NAN)),
          dy(device, dy_values);
      Arena travelling;
      for (int i = 0; i < 2; ++i) travelling.add(TensorSpec(dtype, {part_elements}));
      travelling.build(device);
      const Tensor sent = travelling.get(0), back = travelling.get(1);
      ops::copy(ctx, parts.tensor({part_elements}), sent);
      ops::join_vectors(ctx, one.batch, one.vector_blocks(split, sent), combiner,
                        y.tensor({kSplitSamples, kSplitSlots, kSplitDim}));
      ops::split_gradients(ctx, one.batch, one.vector_blocks(split, back), combiner,
                           dy.tensor({kSplitSamples, kSplitSlots, kSplitDim}), {});
      const std::vector<float> got = y.host(), got_back = floats_of(back), travelled = floats_of(sent);
      const auto rounded = [&, to = dtype](float value) {
        return dispatch_float(to, [&]<class T>() { return static_cast<float>(T(value)); });
      };
      for (int32_t s = 0; s < kSplitSlots; ++s)
        for (int64_t b = 0; b < kSplitSamples; ++b) {
          const auto n =
              static_cast<float>(std::max<size_t>(1, bags[static_cast<size_t>(s * kSplitSamples + b)].size()));
          const float weight = combiner == ops::Combiner::mean ? 1 / n : 1;
          for (int64_t e = 0; e < kSplitDim; ++e) {
            float sum = 0;
            const auto i = static_cast<size_t>((b * kSplitSlots + s) * kSplitDim + e);
            // columns are sorted by owner
            for (int32_t c = 0; c < static_cast<int32_t>(split.columns.size()); ++c) {
              if (split.columns[static_cast<size_t>(c)].column != s) continue;
              sum += travelled[at(c, b) + static_cast<size_t>(e)];
              ASSERT_EQ(got_back[at(c, b) + static_cast<size_t>(e)], rounded(weight * dy_values[i]))
                  << to_string(device);
            }
            ASSERT_EQ(got[i], sum * weight) << to_string(device);
          }
        }
    }
}

const std::pair<std::string, Owners> kOwners[] = {{"by_slot", {0, 1, 2, 0}},
                                                  {"by_key", {kSpread, kSpread, kSpread, kSpread}},
                                                  {"mixed", {2, kSpread, 2, 0}},
                                                  {"one_has_all", {1, 1, 1, 1}}};
INSTANTIATE_TEST_SUITE_P(Of, KeySplit,
                         testing::Values(kOwners[0].second, kOwners[1].second, kOwners[2].second, kOwners[3].second),
                         [](const auto& row) { return kOwners[row.index].first; });

}  // namespace
}  // namespace hctr::test
