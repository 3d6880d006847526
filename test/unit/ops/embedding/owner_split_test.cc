// Splits keys by the owner ranks of their rows, compared with plain loops, on each device.
#include "ops/embedding/owner_split.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/expect.h"
#include "support/values_on_device.h"

namespace hctr::test {
namespace {

TEST(OwnerSplit, GivesEachOwnerItsKeysInTheirOrder) {
  for (const Device device : devices())
    for (const int32_t ranks : {1, 3, 8})
      for (const int64_t bags : {0, 1, 700}) {
        SCOPED_TRACE(cat(to_string(device), ", ", ranks, " ranks, ", bags, " bags"));
        std::mt19937_64 random(static_cast<uint64_t>(ranks * 1000 + bags));
        std::vector<int32_t> offsets = {0};
        std::vector<int64_t> keys;
        for (int64_t bag = 0; bag < bags; ++bag) {
          // includes negative keys
          for (auto n = random() % 6; n > 0; --n) keys.push_back(static_cast<int64_t>(random()));
          offsets.push_back(static_cast<int32_t>(keys.size()));
        }
        std::vector<int32_t> lengths, begin, places(keys.size(), 0);
        std::vector<int64_t> sent;
        for (int32_t owner = 0; owner < ranks; ++owner)
          for (size_t bag = 0; bag < static_cast<size_t>(bags); ++bag) {
            begin.push_back(static_cast<int32_t>(sent.size()));
            for (auto p = static_cast<size_t>(offsets[bag]); p < static_cast<size_t>(offsets[bag + 1]); ++p)
              if (ops::rank_of_key(keys[p], ranks) == owner) {
                sent.push_back(keys[p]);
                places[p] = static_cast<int32_t>(sent.size());
              }
            lengths.push_back(static_cast<int32_t>(sent.size()) - begin.back());
          }
        lengths.push_back(0);
        begin.push_back(static_cast<int32_t>(sent.size()));

        Context ctx(runtime_of(device), runtime_of(device).compute_stream());
        const int64_t all = ranks * bags;
        const ValuesOnDevice<int64_t> given(device, keys), out_keys(device, std::vector<int64_t>(keys.size(), -1));
        const ValuesOnDevice<int32_t> bounds(device, offsets), none(device, std::vector<int32_t>(lengths.size(), -1)),
            out_begin(device, std::vector<int32_t>(lengths.size(), -1)),
            out_places(device, std::vector<int32_t>(keys.size(), -1)), sums(device, lengths);
        const Buffer scratch(device, ops::split_scratch_bytes(device, all) + 1);
        ops::split_by_owner(ctx, given.data(), bounds.data(),
                            {.ranks = ranks,
                             .bags = bags,
                             .most = static_cast<int64_t>(keys.size()),
                             .lengths = none.data(),
                             .begin = out_begin.data(),
                             .sent = out_keys.data(),
                             .places = out_places.data(),
                             .scratch = scratch.data()});
        EXPECT_EQ(none.host(), lengths);
        EXPECT_EQ(out_begin.host(), begin);
        EXPECT_EQ(out_keys.host(), sent);
        EXPECT_EQ(out_places.host(), places);

        ops::add_lengths(ctx, none.data(), all + 1, sums.data(), scratch.data());
        EXPECT_EQ(sums.host(), begin);

        std::vector<int32_t> rows, found;
        for (size_t i = 0; i < keys.size(); ++i) rows.push_back(static_cast<int32_t>(random() % 3));
        for (const int32_t place : places) found.push_back(rows[static_cast<size_t>(place - 1)] != 0 ? place : 0);
        const ValuesOnDevice<int32_t> at_owner(device, rows), out(device, std::vector<int32_t>(keys.size(), -1));
        ops::find_sent(ctx, out_places.data(), at_owner.data(), static_cast<int64_t>(keys.size()), out.data());
        EXPECT_EQ(out.host(), found);
      }
}

}  // namespace
}  // namespace hctr::test
