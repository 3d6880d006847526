// Splits the keys of more bags than one GPU block processes, on every device, compared with plain loops.
#include <gtest/gtest.h>

#include <random>

#include "ops/embedding/key_split.h"
#include "support/values_on_device.h"

namespace hctr::test {
namespace {

/// Three ranks and two slots. A message with one slot has enough samples to span two blocks and end in a third.
constexpr int32_t kManyRanks = 3, kManySlots = 2;
constexpr int64_t kManySamples = 4500, kMostOfBag = 3;
using ManyBags = std::vector<std::vector<int64_t>>;  // index: slot * samples + sample

/// The owner of each slot; -1 if the slot is sharded by key.
struct ManyMessages {
  explicit ManyMessages(const std::vector<int32_t>& of_slots) {
    for (int32_t r = 0; r < kManyRanks; ++r) {
      ops::OwnerKeys owner{static_cast<int32_t>(columns.size()), 0, words, 0};
      for (int32_t s = 0; s < kManySlots; ++s)
        if (const int32_t of = of_slots[static_cast<size_t>(s)]; of == -1 || of == r)
          columns.push_back({s, r, of == -1 ? kManyRanks : 1});
      owner.count = static_cast<int32_t>(columns.size()) - owner.first;
      owner.keys = words + ops::OwnerKeys::offset_words(owner.count, kManySamples);
      words += message_words(owner);
      owners.push_back(owner);
    }
  }
  static int64_t message_words(const ops::OwnerKeys& owner) {
    return owner.keys - owner.begin + owner.count * kManySamples * kMostOfBag;
  }
  std::vector<ops::OwnedColumn> columns;
  std::vector<ops::OwnerKeys> owners;
  int64_t words = 0;
};

template <class T>
ValuesOnDevice<std::byte> records_on(Device device, const std::vector<T>& records) {
  const auto* bytes = reinterpret_cast<const std::byte*>(records.data());
  return {device, std::vector<std::byte>(bytes, bytes + records.size() * sizeof(T))};
}

/// The messages of a rank for these bags.
std::vector<int64_t> split_many(Device device, const ManyMessages& to, const ManyBags& bags) {
  std::vector<int64_t> keys;
  std::vector<int32_t> offsets = {0};
  for (const auto& bag : bags) {
    keys.insert(keys.end(), bag.begin(), bag.end());
    offsets.push_back(static_cast<int32_t>(keys.size()));
  }
  const ValuesOnDevice<int64_t> all_keys(device, keys),
      blocks(device, std::vector<int64_t>(static_cast<size_t>(to.words), -1));
  const ValuesOnDevice<int32_t> all_offsets(device, offsets);
  const auto columns = records_on(device, to.columns), owners = records_on(device, to.owners);
  std::vector<int64_t*> addresses;
  for (const ops::OwnerKeys& owner : to.owners) addresses.push_back(blocks.data() + owner.begin);
  const auto messages = records_on(device, addresses);
  const auto sent = static_cast<int64_t>(to.columns.size()) * kManySamples;
  const ValuesOnDevice<uint8_t> present(device, std::vector<uint8_t>(static_cast<size_t>(sent), 255));
  const ValuesOnDevice<std::byte> scratch(
      device, std::vector<std::byte>(ops::key_split_scratch_bytes(device, sent, kManyRanks)));
  Context ctx(runtime_of(device), runtime_of(device).compute_stream());
  ops::split_keys(
      ctx,
      {all_keys.data(),
       all_offsets.data(),
       kManySlots,
       kManySamples,
       static_cast<int64_t>(keys.size()),
       kManySlots,
       {}},
      {kManyRanks, static_cast<int32_t>(to.columns.size()), reinterpret_cast<const ops::OwnedColumn*>(columns.data()),
       reinterpret_cast<const ops::OwnerKeys*>(owners.data()), nullptr,
       reinterpret_cast<int64_t* const*>(messages.data())},
      present.data(), scratch.data());
  std::vector<int64_t> words = blocks.host();
  std::vector<uint8_t> marks(present.count);
  copy_bytes(ctx.stream(), marks.data(), present.data(), marks.size());
  ctx.stream().synchronize();
  for (const ops::OwnerKeys& owner : to.owners) {
    const auto* offset = reinterpret_cast<const int32_t*>(words.data() + owner.begin);
    for (int32_t c = owner.first; c < owner.first + owner.count; ++c)
      for (int64_t b = 0; b < kManySamples; ++b, ++offset)
        if (marks[static_cast<size_t>(owner.present(c, b, kManySamples))] != (offset[1] > offset[0]))
          ADD_FAILURE() << "column " << c << ", sample " << b;
  }
  return words;
}

TEST(KeySplitOfManyBags, MessagesAreSplitAndMergedInOrder) {
  std::mt19937_64 random(5);
  std::vector<ManyBags> of_ranks(kManyRanks, ManyBags(kManySlots * kManySamples));
  for (ManyBags& bags : of_ranks)
    for (auto& bag : bags)
      for (auto n = random() % (kMostOfBag + 1); n > 0; --n) bag.push_back(static_cast<int64_t>(random() % 50) - 20);
  for (const Device device : devices())
    for (const std::vector<int32_t>& of_slots :
         {std::vector<int32_t>{-1, -1}, std::vector<int32_t>{2, 0}, std::vector<int32_t>{1, -1}}) {
      SCOPED_TRACE(cat("slots of ", of_slots[0], " and ", of_slots[1], " on ", to_string(device)));
      Context ctx(runtime_of(device), runtime_of(device).compute_stream());
      const ManyMessages to(of_slots);
      std::vector<std::vector<int64_t>> sent;
      for (const ManyBags& bags : of_ranks) sent.push_back(split_many(device, to, bags));
      for (int32_t r = 0; r < kManyRanks; ++r) {
        const ops::OwnerKeys& owner = to.owners[static_cast<size_t>(r)];
        const int64_t words = ManyMessages::message_words(owner), bags = owner.count * kManyRanks * kManySamples;
        std::vector<int64_t> received, expected_keys;
        for (const auto& from : sent)
          received.insert(received.end(), from.begin() + owner.begin, from.begin() + owner.begin + words);
        std::vector<int32_t> expected_offsets = {0};
        for (int32_t c = owner.first; c < owner.first + owner.count; ++c)
          for (const ManyBags& of_rank : of_ranks)
            for (int64_t b = 0; b < kManySamples; ++b) {
              const ops::OwnedColumn column = to.columns[static_cast<size_t>(c)];
              for (const int64_t key : of_rank[static_cast<size_t>(column.column * kManySamples + b)])
                if (column.owns(key)) expected_keys.push_back(key);
              expected_offsets.push_back(static_cast<int32_t>(expected_keys.size()));
            }
        const ValuesOnDevice<int64_t> messages(device, received),
            keys(device, std::vector<int64_t>(static_cast<size_t>(bags * kMostOfBag)));
        const ValuesOnDevice<int32_t> offsets(device, std::vector<int32_t>(static_cast<size_t>(bags + 1), -1));
        ops::merge_keys(ctx, {kManyRanks, owner.count, kManySamples, words}, messages.tensor({kManyRanks * words}),
                        offsets.tensor({bags + 1}), keys.tensor({bags * kMostOfBag}));
        EXPECT_TRUE(offsets.host() == expected_offsets) << "owner " << r;
        std::vector<int64_t> got = keys.host();
        got.resize(expected_keys.size());
        EXPECT_TRUE(got == expected_keys) << "owner " << r;
      }
    }
}

}  // namespace
}  // namespace hctr::test
