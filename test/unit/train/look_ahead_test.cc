#include "train/look_ahead.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <utility>

namespace hctr::test {
namespace {

using Asked = std::vector<std::pair<int64_t, int32_t>>;
constexpr std::chrono::seconds kLong(10);  // long enough for any machine

/// A batch of two samples with two inputs: two slots with bags, and two slots with one key each.
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
  /// The batch with `number` as its first key.
  const BatchView& batch(int64_t number) {
    batch_.tables[0].set_key(0, number);
    batch_.state->first_sample = 2 * number;
    return batch_;
  }
  BatchLayout layout_;
  std::vector<std::byte> memory_;
  BatchView batch_;
  const std::shared_ptr<LookAheadGroup> group_ = std::make_shared<LookAheadGroup>();
};

/// Records the numbers of the requested batches.
class Numbers {
 public:
  LookAheadGroup::Ask ask() {
    return [this](size_t input, std::span<const ops::RowOwner> keys) {
      if (input > 0) return;
      const std::lock_guard lock(mutex_);
      numbers_.push_back(keys[0].key);
      change_.notify_all();
    };
  }
  std::vector<int64_t> wait(size_t count, std::chrono::milliseconds limit = kLong) {
    std::unique_lock lock(mutex_);
    change_.wait_for(lock, limit, [&] { return numbers_.size() >= count; });
    return numbers_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  std::vector<int64_t> numbers_;
};

TEST_F(LookAheadTest, AsksForEachKeyWithItsSlot) {
  std::promise<void> all;
  Asked asked[2];
  LookAhead ahead(
      [&](size_t input, std::span<const ops::RowOwner> keys) {
        for (const ops::RowOwner& owner : keys) asked[input].emplace_back(owner.key, owner.slot);
        if (input == 1) all.set_value();
      },
      2, group_);
  ahead.add(batch_);
  ASSERT_EQ(all.get_future().wait_for(kLong), std::future_status::ready);
  EXPECT_EQ(asked[0], (Asked{{-10, 0}, {-11, 0}, {-12, 1}, {-13, 1}, {-14, 1}}));
  EXPECT_EQ(asked[1], (Asked{{20, 0}, {21, 0}, {22, 1}, {23, 1}}));
  ahead.stop();
  ahead.add(batch_);  // add() does nothing after stop()
  EXPECT_EQ(asked[0].size(), 5u);
}

/// If an allocation fails, the current batch is skipped, but not the next one.
TEST_F(LookAheadTest, ABatchWithoutMemoryIsLeftOut) {
  int calls = 0;
  std::promise<void> second;
  LookAhead ahead(
      [&](size_t input, std::span<const ops::RowOwner>) {
        ++calls;
        if (calls <= 2) throw std::bad_alloc();
        if (input == 1) second.set_value();
      },
      2, group_);
  ahead.add(batch(1));
  ahead.add(batch(2));
  ASSERT_EQ(second.get_future().wait_for(kLong), std::future_status::ready);
  EXPECT_EQ(calls, 4);
}

/// However many batches the reader has filled, requests stay within the look-ahead depth, and follow the order of the
/// steps.
TEST_F(LookAheadTest, ABatchIsAskedForOnceItsTurnIsNear) {
  Numbers asked;
  LookAhead ahead(asked.ask(), 2, group_);
  ahead.add(batch(2));
  EXPECT_EQ(asked.wait(1), (std::vector<int64_t>{2}));
  ahead.add(batch(1));  // arrives late, because another reader thread was slower
  EXPECT_EQ(asked.wait(2), (std::vector<int64_t>{2, 1}));
  ahead.add(batch(3));
  EXPECT_EQ(asked.wait(3, std::chrono::milliseconds(20)), (std::vector<int64_t>{2, 1})) << "two are asked for";
  ahead.begin_step(2 * 1, {});
  EXPECT_EQ(asked.wait(3), (std::vector<int64_t>{2, 1, 3}));
  ahead.add(batch(4));
  ahead.begin_step(2 * 2, {});
  EXPECT_EQ(asked.wait(4), (std::vector<int64_t>{2, 1, 3, 4}));
}

/// The reader does not wait for a slow disk. Batches whose step has begun are not requested.
TEST_F(LookAheadTest, BatchesThatHaveBegunAreLeftOut) {
  Numbers asked;
  std::promise<void> in_call, go_on;
  LookAhead ahead(
      [&, first = true, ask = asked.ask()](size_t input, std::span<const ops::RowOwner> keys) mutable {
        ask(input, keys);
        if (!std::exchange(first, false)) return;
        in_call.set_value();
        go_on.get_future().wait_for(kLong);
      },
      2, group_);
  ahead.add(batch(1));
  ASSERT_EQ(in_call.get_future().wait_for(kLong), std::future_status::ready);
  for (int64_t number = 2; number < 9; ++number) {
    ahead.add(batch(number));  // must return immediately
    ahead.begin_step(2 * (number - 1), {});
  }
  go_on.set_value();
  EXPECT_EQ(asked.wait(2), (std::vector<int64_t>{1, 8}));
}

/// Each rank receives the batches of all ranks of its process until the rank is destroyed.
TEST_F(LookAheadTest, RanksOfAProcessHearOfEachOthersBatches) {
  Numbers asked[2];
  LookAhead first(asked[0].ask(), 2, group_);
  {
    LookAhead second(asked[1].ask(), 2, group_);
    first.add(batch(1));
    EXPECT_EQ(asked[0].wait(1), (std::vector<int64_t>{1}));
    EXPECT_EQ(asked[1].wait(1), (std::vector<int64_t>{1}));
    second.add(batch(2));
    EXPECT_EQ(asked[0].wait(2), (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(asked[1].wait(2), (std::vector<int64_t>{1, 2}));
  }
  first.add(batch(3));
  EXPECT_EQ(asked[0].wait(3), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(asked[1].wait(2), (std::vector<int64_t>{1, 2}));
}

/// A rank whose allocation fails is skipped. Destroying a rank waits only for the current call, and later calls skip
/// the rank.
TEST_F(LookAheadTest, ARankThatFailsLeavesTheOthersAlone) {
  Numbers asked;
  std::promise<void> in_call, go_on;
  auto other = std::make_unique<LookAhead>(
      [&](size_t input, std::span<const ops::RowOwner>) {
        if (input == 0) throw std::bad_alloc();
        in_call.set_value();
        go_on.get_future().wait_for(kLong);
      },
      2, group_);
  LookAhead one(asked.ask(), 2, group_);
  one.add(batch(1));
  ASSERT_EQ(in_call.get_future().wait_for(kLong), std::future_status::ready);
  auto ended = std::async(std::launch::async, [&] { other.reset(); });
  EXPECT_EQ(ended.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  go_on.set_value();
  ASSERT_EQ(ended.wait_for(kLong), std::future_status::ready);
  one.add(batch(2));  // a call of the destroyed rank would set its promise twice, which throws
  EXPECT_EQ(asked.wait(2), (std::vector<int64_t>{1, 2}));
  one.stop();
}

constexpr int64_t kRow = 4096, kWindow = LookAheadDepth::kBatches;

/// Returns the depth after `decisions` decisions.
int after(LookAheadDepth& depth, int64_t decisions, int64_t ahead, int64_t again) {
  for (int64_t i = 0; i < decisions * kWindow; ++i) depth.note(ahead, again);
  return depth.depth();
}

TEST(LookAheadDepthTest, GoesLessFarWhereTheCacheDropsWhatWasReadAhead) {
  LookAheadDepth depth(2);
  EXPECT_EQ(after(depth, 9, 80 * kRow, 20 * kRow), 2) << "a fifth is lost";
  EXPECT_EQ(after(depth, 1, 60 * kRow, 40 * kRow), 1);
  EXPECT_EQ(after(depth, 1, 0, 40 * kRow), 0) << "dropped, and none fetched ahead";
}

TEST(LookAheadDepthTest, StaysWhereNothingIsKnown) {
  LookAheadDepth depth(2);
  EXPECT_EQ(after(depth, 9, 0, 0), 2) << "all from the cache, or the system does not count";
  EXPECT_EQ(after(depth, 9, 1, 100), 2);
}

/// Each failed attempt takes one decision period, and doubles the time until the next attempt.
TEST(LookAheadDepthTest, TriesAgainLessAndLessOften) {
  LookAheadDepth depth(1);
  EXPECT_EQ(after(depth, 1, kRow, 100 * kRow), 0);
  for (int wait = LookAheadDepth::kLeastWait; wait <= LookAheadDepth::kMostWait; wait *= 2) {
    EXPECT_EQ(after(depth, wait - 1, 0, 0), 0) << wait;
    EXPECT_EQ(after(depth, 1, 0, 0), 1) << wait;
    EXPECT_EQ(after(depth, 1, kRow, 100 * kRow), 0) << wait;
  }
  EXPECT_EQ(after(depth, LookAheadDepth::kMostWait, 0, 0), 1);
  EXPECT_EQ(after(depth, 2, 100 * kRow, 0), 1) << "there is room again";
  EXPECT_EQ(after(depth, 1, kRow, 100 * kRow), 0);
  EXPECT_EQ(after(depth, LookAheadDepth::kLeastWait, 0, 0), 1) << "as at first";
}

}  // namespace
}  // namespace hctr::test
