// Packs a caller's bags by slot, compared with a loop over slots and samples.
#include "infer/bag_packing.h"

#include <gtest/gtest.h>

#include <random>

#include "support/message_of.h"

namespace hctr::test {
namespace {

/// More bags than one task of the thread pool processes.
constexpr int64_t kSamples = 9000, kSlots = 3, kCapacity = 9100, kFirst = 2;

struct Bags {
  std::vector<int64_t> keys, offsets = {0};
};

Bags random_bags(uint64_t seed, int64_t most, uint64_t key_mask) {
  std::mt19937_64 random(seed);
  Bags bags;
  for (int64_t bag = 0; bag < kSamples * kSlots; ++bag) {
    for (auto n = random() % static_cast<uint64_t>(most + 1); n > 0; --n)
      bags.keys.push_back(static_cast<int64_t>(random() & key_mask));
    bags.offsets.push_back(static_cast<int64_t>(bags.keys.size()));
  }
  return bags;
}

SparseInput section_of(int64_t most) {
  SparseInput section;
  section.slot_num = Width{kSlots};
  section.nnz_per_slot = PerSlot{{most}};
  return section;
}

void expect_packed(int64_t keep, bool keep_last, uint64_t key_mask) {
  const Bags bags = random_bags(3, 4, key_mask);
  const std::vector<int32_t> narrow(bags.offsets.begin(), bags.offsets.end());
  const BatchShape shape{.samples = kCapacity, .tables = {{kSlots, kCapacity * kSlots * 4, keep, keep_last}}};
  const SparseInput section = section_of(4);
  const int64_t count = kSamples - kFirst;
  std::vector<int64_t> keys;
  std::vector<int32_t> offsets;
  for (int64_t s = 0; s < kSlots; ++s)
    for (int64_t b = 0; b < kCapacity; ++b) {
      offsets.push_back(static_cast<int32_t>(keys.size()));
      if (b >= count) continue;
      const auto at = static_cast<size_t>((kFirst + b) * kSlots + s);
      int64_t begin = bags.offsets[at], end = bags.offsets[at + 1];
      if (keep > 0 && end - begin > keep) keep_last ? begin = end - keep : end = begin + keep;
      keys.insert(keys.end(), bags.keys.begin() + begin, bags.keys.begin() + end);
    }
  offsets.push_back(static_cast<int32_t>(keys.size()));
  for (const bool wide : {true, false}) {
    const InputView view{.name = "keys",
                         .data = bags.keys.data(),
                         .type = ElementType::i64,
                         .offsets = wide ? static_cast<const void*>(bags.offsets.data()) : narrow.data(),
                         .offsets_type = wide ? ElementType::i64 : ElementType::i32};
    ThreadPool threads(3);
    const BagPacking packing(threads, view, kFirst, count, section, shape.tables[0]);
    EXPECT_EQ(packing.fits_32(), key_mask >> 32 == 0);
    ASSERT_EQ(packing.keys(), static_cast<int64_t>(keys.size()));
    const BatchLayout layout(shape);
    std::vector<std::byte> memory(layout.bytes);
    const BatchView batch(layout, memory.data());
    batch.place(std::vector<KeyForm>{{.count = packing.keys(), .fits_32 = packing.fits_32()}});
    packing.write(batch.tables[0], kCapacity);
    EXPECT_EQ(batch.tables[0].keys_of(0, packing.keys()), keys);
    EXPECT_EQ(std::vector<int32_t>(batch.tables[0].offsets(), batch.tables[0].offsets() + offsets.size()), offsets);
  }
}

TEST(BagPacking, PutsBagsInTheOrderOfSlots) {
  expect_packed(0, false, ~uint64_t{0});
  expect_packed(0, false, 0xffffffff);
}

TEST(BagPacking, KeepsTheFirstOrTheLastKeysOfALongBag) {
  expect_packed(2, false, ~uint64_t{0});
  expect_packed(2, true, 0xffffffff);
}

TEST(BagPacking, NamesTheBagThatDoesNotFit) {
  const std::vector<int64_t> keys(20), falling = {0, 2, 1, 3}, long_bag = {0, 0, 6, 6};
  const SparseInput section = section_of(5);
  const BatchShape::Table shape{kSlots, 100};
  ThreadPool threads(1);
  const auto message = [&](const std::vector<int64_t>& offsets) {
    const InputView view{.name = "items", .data = keys.data(), .type = ElementType::i64, .offsets = offsets.data()};
    return message_of(Kind::usage, [&] { BagPacking(threads, view, 0, 1, section, shape); });
  };
  EXPECT_NE(message(falling).find("the offsets of slot 1 of sample 0 decrease"), std::string::npos);
  EXPECT_NE(message(long_bag).find("slot 1 of sample 0 has 6 keys, but the model accepts up to 5"), std::string::npos);
}

}  // namespace
}  // namespace hctr::test
