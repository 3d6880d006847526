#include "use/permuted_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace hctr::test {
namespace {

/// A batch of 6 rows, 5 of which are samples. It has two dense values, and an input of three slots with 0 to 2 keys
/// each.
struct PermutedBatch {
  PermutedBatch() : layout(shape()), bytes(layout.bytes) {
    const BatchView view(layout, bytes.data());
    view.state->valid_samples = 5;
    for (int r = 0; r < 5; ++r)
      for (int d = 0; d < 2; ++d) view.dense[r * 2 + d] = static_cast<float>(10 * r + d);
    view.place(std::vector<KeyForm>{{.count = 15, .fits_32 = true}});
    int32_t at = 0;
    for (int s = 0; s < 3; ++s)
      for (int r = 0; r < 6; ++r) {
        view.tables[0].offsets()[s * 6 + r] = at;
        for (int k = 0; r < 5 && k < (r + s) % 3; ++k) view.tables[0].set_key(at++, 100 * s + 10 * r + k);
      }
    view.tables[0].offsets()[18] = at;
    EXPECT_EQ(at, 15);
  }
  static BatchShape shape() { return {.samples = 6, .label_dim = 1, .dense_dim = 2, .tables = {{3, 36, 0, false}}}; }

  std::vector<int64_t> bag(int slot, int64_t row) {
    const BatchView view(layout, bytes.data());
    const int64_t at = slot * 6 + row;
    return view.tables[0].keys_of(view.tables[0].offset(at), view.tables[0].offset(at + 1));
  }
  float dense(int64_t row, int d) { return BatchView(layout, bytes.data()).dense[row * 2 + d]; }

  BatchLayout layout;
  std::vector<std::byte> bytes;
};

TEST(PermutedBatch, OneFeatureHasTheValuesOfOtherRowsAndTheRestStays) {
  PermutedBatch batch, permuted;
  const std::vector<int64_t> order = {3, 0, 4, 1, 2};
  permute_feature(batch.layout, batch.bytes.data(), {"slot", false, 0, 1}, order, permuted.bytes.data());
  for (int64_t r = 0; r < 6; ++r) {
    EXPECT_EQ(permuted.bag(1, r), r < 5 ? batch.bag(1, order[static_cast<size_t>(r)]) : std::vector<int64_t>()) << r;
    EXPECT_EQ(permuted.bag(0, r), batch.bag(0, r)) << r;
    EXPECT_EQ(permuted.bag(2, r), batch.bag(2, r)) << r;
    EXPECT_EQ(permuted.dense(r, 0), batch.dense(r, 0));
  }
  permute_feature(batch.layout, batch.bytes.data(), {"dense", true, 0, 1}, order, permuted.bytes.data());
  for (int64_t r = 0; r < 5; ++r) {
    EXPECT_EQ(permuted.dense(r, 1), batch.dense(order[static_cast<size_t>(r)], 1));
    EXPECT_EQ(permuted.dense(r, 0), batch.dense(r, 0));
    EXPECT_EQ(permuted.bag(1, r), batch.bag(1, r));
  }
}

TEST(PermutedBatch, OneKeyASlotNeedsNoOffsets) {
  const BatchLayout layout({.samples = 6, .label_dim = 1, .dense_dim = 0, .tables = {{2, 12, 0, false}}});
  std::vector<std::byte> bytes(layout.bytes), to(layout.bytes);
  const BatchView view(layout, bytes.data()), permuted(layout, to.data());
  view.place(std::vector<KeyForm>{{.count = 10, .ones = true, .rows = 5}});
  for (int i = 0; i < 10; ++i) view.tables[0].set_key(i, i);
  permute_feature(layout, bytes.data(), {"slot", false, 0, 1}, {3, 0, 4, 1, 2}, to.data());
  EXPECT_EQ(permuted.tables[0].keys_of(0, 10), (std::vector<int64_t>{0, 1, 2, 3, 4, 8, 5, 9, 6, 7}));
  EXPECT_EQ(permuted.tables[0].offset(11), 10) << "the row that is no sample";
}

TEST(PermutedBatch, AnOrderHasEveryRowOnceAndDependsOnTheSeed) {
  const std::vector<int64_t> order = random_order(1000, 7);
  EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 1000u);
  EXPECT_EQ(*std::max_element(order.begin(), order.end()), 999);
  EXPECT_EQ(order, random_order(1000, 7));
  EXPECT_NE(order, random_order(1000, 8));
  EXPECT_TRUE(random_order(0, 1).empty());
}

}  // namespace
}  // namespace hctr::test
