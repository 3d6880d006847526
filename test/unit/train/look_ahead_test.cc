#include "train/look_ahead.h"

#include <gtest/gtest.h>

#include <future>
#include <utility>

namespace hctr::test {
namespace {

using Asked = std::vector<std::pair<int64_t, int32_t>>;

/// A batch of two samples: an input of two slots with bags, and one of two slots with one key each.
class LookAheadTest : public testing::Test {
 protected:
  LookAheadTest()
      : layout_(BatchShape{.samples = 2, .label_dim = 1, .dense_dim = 0, .tables = {{2, 8}, {2, 4}}}),
        memory_(layout_.bytes),
        batch_(layout_, memory_.data()) {
    const KeyForm forms[] = {{.count = 5}, {.count = 4, .fits_32 = true, .ones = true, .rows = 2}};
    batch_.place(forms);
    const int32_t offsets[] = {0, 2, 2, 3, 5};
    std::copy(std::begin(offsets), std::end(offsets), batch_.tables[0].offsets());
    for (int64_t i = 0; i < 5; ++i) batch_.tables[0].set_key(i, -10 - i);
    for (int64_t i = 0; i < 4; ++i) batch_.tables[1].set_key(i, 20 + i);
  }
  BatchLayout layout_;
  std::vector<std::byte> memory_;
  BatchView batch_;
};

TEST_F(LookAheadTest, AsksForEachKeyWithItsSlot) {
  std::vector<Asked> asked(2);
  std::promise<void> all;
  LookAhead ahead(
      [&](size_t input, std::span<const ops::RowOwner> keys) {
        for (const ops::RowOwner& owner : keys) asked[input].emplace_back(owner.key, owner.slot);
        if (input == 1) all.set_value();
      },
      3);
  ahead.add(batch_);
  all.get_future().wait();
  EXPECT_EQ(asked[0], (Asked{{-10, 0}, {-11, 0}, {-12, 1}, {-13, 1}, {-14, 1}}));
  EXPECT_EQ(asked[1], (Asked{{20, 0}, {21, 0}, {22, 1}, {23, 1}}));
  ahead.stop();
  ahead.add(batch_);  // does nothing
  EXPECT_EQ(asked[0].size(), 5u);
}

/// Where memory is short a batch is left out, and the next one is not.
TEST_F(LookAheadTest, ABatchWithoutMemoryIsLeftOut) {
  int calls = 0;
  std::promise<void> second;
  LookAhead ahead(
      [&](size_t input, std::span<const ops::RowOwner>) {
        if (++calls == 1) throw std::bad_alloc();
        if (input == 1) second.set_value();
      },
      3);
  ahead.add(batch_);
  ahead.add(batch_);
  second.get_future().wait();
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace hctr::test
