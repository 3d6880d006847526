// Rows on a device, in host memory and on disk. These tests use no table and train nothing; they only assign rows to
// batches.
#include "engine/tiers/row_tiers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "engine/tiers/tier_plan.h"
#include "support/devices.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

constexpr int64_t kKeysAtATime = 32, kMostInMemory = 1 << 14;

TableSpec lone_tiers_spec() {
  TableSpec spec;
  spec.name = "tiers";
  spec.dim = 1024;
  spec.slots = spec.samples = 1;
  spec.key_capacity = kKeysAtATime;
  return spec;
}

/// Rows on the CPU and their tiers.
class LoneTiers {
 public:
  explicit LoneTiers(RowMemoryLimits limits, const TableSpec& spec = lone_tiers_spec())
      : memory(kCpu, std::move(limits)),
        rows(runtime_of(kCpu), memory, spec, DirectKeys{},
             {.most_rows = kMostInMemory,
              .addresses = kMostInMemory,
              .batch_keys = kKeysAtATime,
              .batches_ahead = 1,
              .on_disk = memory.has_disk(),
              .removes = memory.has_disk()}),
        tiers(memory, rows, spec, DirectKeys{}, {.on_disk = memory.has_disk()}) {}

  /// Prepares a batch with the keys `first` to `first` + kKeysAtATime - 1. Returns their row numbers.
  std::vector<int32_t> step(int64_t first) {
    std::vector<int64_t> keys(kKeysAtATime);
    std::iota(keys.begin(), keys.end(), first);
    std::vector<int32_t> numbers(keys.size());
    const int32_t ends[2] = {0, kKeysAtATime};
    const ops::KeyBatch batch{
        .keys = keys.data(), .offsets = ends, .slots = 1, .samples = 1, .key_capacity = kKeysAtATime, .columns = 1};
    tiers.swap();
    rows.index().count_batch();
    if (tiers.disk()) tiers.disk()->begin_step(static_cast<uint32_t>(++steps_));
    Runtime& runtime = runtime_of(kCpu);
    Context ctx(runtime, runtime.prepare_stream());
    tiers.bring_rows(ctx, batch, numbers.data(), NewKeys::get_rows);
    ops::index_insert(ctx, rows.index().view(), batch, numbers.data());
    ops::init_new_rows(ctx, rows.index().view(), rows.arrays().init(), rows.arrays().data());
    uint32_t after = 0;
    ops::index_close_batch(ctx, rows.index().view(), &after, rows.index().host_word());
    if (tiers.disk()) tiers.disk()->keep_new_rows();
    ops::index_finish_step(ctx, rows.index().view(), &after);
    return numbers;
  }
  float& first_element(int32_t row) { return *reinterpret_cast<float*>(rows.arrays().column("vectors").row(row)); }
  void begin(int64_t count) {
    tiers.get_memory(count);
    rows.index().grow(count + rows.batches().ring_keys());
  }

  RowMemory memory;
  RowsInMemory rows;
  RowTiers tiers;

 private:
  int steps_ = 0;
};

RowMemoryLimits limits_of(int64_t device, int64_t host) {
  return {.device = device, .host = host, .device_setting = "\"gpu\"", .host_setting = "\"host\""};
}

RowMemoryLimits limits_with_disk(const TemporaryFolder& folder, int64_t host = int64_t{2} << 20) {
  RowMemoryLimits limits = limits_of(0, host);
  limits.disk_folder = folder.path().string();
  limits.disk = int64_t{1} << 28;
  return limits;
}

TEST(RowTiers, WithoutABudgetAllRowsAreOnTheDevice) {
  LoneTiers lone({});
  lone.begin(1000);
  EXPECT_EQ(lone.rows.arrays().capacity(), 1000);
  lone.step(0);
  EXPECT_EQ(lone.tiers.host_rows().rows, 0);
  EXPECT_EQ(lone.tiers.finished_rows(), kKeysAtATime);
  EXPECT_EQ(lone.tiers.disk(), nullptr);
}

TEST(RowTiers, RowsBeyondTheDeviceAreOnItsHost) {
  LoneTiers lone(limits_of(int64_t{2} << 20, int64_t{1} << 30));
  lone.begin(2000);
  EXPECT_TRUE(lone.rows.arrays().has_numbers_on_host());
  for (int64_t first = 0; first < 2000 - kKeysAtATime; first += kKeysAtATime) lone.step(first);
  const HostRows on_host = lone.tiers.host_rows();
  EXPECT_GT(on_host.rows, 1000);
  EXPECT_LT(on_host.rows, 2000);
  EXPECT_GT(lone.memory.host_bytes(), on_host.rows * 4096);
  EXPECT_GT(lone.tiers.account().device_bytes().numbers, 0);
}

TEST(RowTiers, WhatNoTierHasRoomForIsAnErrorThatNamesTheLeastBudget) {
  LoneTiers lone(limits_of(int64_t{2} << 20, int64_t{1} << 20));
  try {
    lone.begin(2000);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::device);
    EXPECT_NE(std::string(error.what()).find("must be at least "), std::string::npos) << error.what();
  }
}

TEST(RowTiers, GrowthTakesWhatIsNeededWhereThereIsNoRoomForAmple) {
  LoneTiers lone({});
  std::vector<int64_t> tried;
  const auto grow_to = [&](int64_t rows) {
    tried.push_back(rows);
    if (rows > 100) throw Error(Kind::device, "no room");
  };
  EXPECT_FALSE(lone.tiers.grow(50, 80, 80, grow_to));
  EXPECT_TRUE(tried.empty());
  EXPECT_TRUE(lone.tiers.grow(90, 200, 80, grow_to));
  EXPECT_EQ(tried, (std::vector<int64_t>{200, 90}));
  EXPECT_TRUE(lone.tiers.grow(70, 200, 80, grow_to)) << "there is enough";
  EXPECT_THROW(lone.tiers.grow(150, 200, 80, grow_to), Error);
}

TEST(RowTiers, EvictedRowsComeBackAsTheyWere) {
  const TemporaryFolder folder;
  LoneTiers lone(limits_with_disk(folder));
  lone.begin(2 * kKeysAtATime);
  const int64_t keys = 64 * kKeysAtATime;
  for (int64_t first = 0; first < keys; first += kKeysAtATime) {
    const std::vector<int32_t> numbers = lone.step(first);
    for (size_t i = 0; i < numbers.size(); ++i)
      lone.first_element(numbers[i]) = static_cast<float>(first + static_cast<int64_t>(i)) + 0.5f;
  }
  const int64_t on_disk = lone.tiers.disk()->disk().rows();
  EXPECT_GT(on_disk, keys / 2);
  EXPECT_EQ(on_disk + lone.tiers.finished_rows(), keys) << "no row is lost, and none is in two tiers";
  for (int64_t first = 0; first < keys; first += 3 * kKeysAtATime) {
    const std::vector<int32_t> numbers = lone.step(first);
    for (size_t i = 0; i < numbers.size(); ++i)
      ASSERT_EQ(lone.first_element(numbers[i]), static_cast<float>(first + static_cast<int64_t>(i)) + 0.5f);
  }
  EXPECT_GT(lone.tiers.disk()->use().brought, 0);
}

/// An eviction frees a sixteenth of the rows, which is more than a batch adds.
TEST(RowTiers, ClosingUpLeavesNoFreePlace) {
  const TemporaryFolder folder;
  LoneTiers lone(limits_with_disk(folder, int64_t{16} << 20));
  lone.begin(2 * kKeysAtATime);
  int64_t key = 0;
  for (; lone.rows.free_places().empty() && key < 1000 * kKeysAtATime; key += kKeysAtATime) lone.step(key);
  ASSERT_FALSE(lone.rows.free_places().empty());
  const int64_t before = lone.tiers.finished_rows(), on_disk = lone.tiers.disk()->disk().rows();
  EXPECT_EQ(lone.tiers.close_up(), before);
  EXPECT_TRUE(lone.rows.free_places().empty());
  EXPECT_EQ(lone.rows.index().state().finished, static_cast<uint32_t>(before));
  EXPECT_EQ(lone.tiers.disk()->disk().rows(), on_disk);
  EXPECT_GT(lone.tiers.disk()->use().moved_up, 0);
}

TEST(TierPlan, RowsThatAllChangeTogetherOrAreFixedStayInMemory) {
  const TemporaryFolder folder;
  TableSpec spec = lone_tiers_spec();
  spec.memory = std::make_shared<RowMemory>(kCpu, limits_with_disk(folder));
  Runtime& runtime = runtime_of(kCpu);
  EXPECT_TRUE(may_be_on_disk(runtime, spec));
  spec.direct.spans.push_back({.first = 0, .count = 10, .base = 0, .step = 1});
  EXPECT_FALSE(may_be_on_disk(runtime, spec)) << "all of them fit";
  spec.direct.spans[0].count = 1 << 20;
  EXPECT_TRUE(may_be_on_disk(runtime, spec));
  spec.direct = {};
  spec.fixed_keys = true;
  EXPECT_FALSE(may_be_on_disk(runtime, spec));
  EXPECT_FALSE(rows_may_move(runtime, spec));
  spec.fixed_keys = false;
  spec.memory = nullptr;
  EXPECT_FALSE(may_be_on_disk(runtime, spec)) << "the budget has no disk";
}

TEST(TierPlan, AddressesAreForTheRowsOfALimitOrOfMemory) {
  TableSpec spec = lone_tiers_spec();
  Runtime& runtime = runtime_of(kCpu);
  EXPECT_EQ(rows_to_reserve(runtime, spec, 10, 500), 500);
  const int64_t fit = rows_to_reserve(runtime, spec, 10, kMostRows);
  EXPECT_GT(fit, 500);
  spec.dim *= 2;
  EXPECT_LT(rows_to_reserve(runtime, spec, 10, kMostRows), fit);
  spec.eval_key_capacity = 100;
  EXPECT_EQ(rows_at_a_time(spec, 50), 100);
}

}  // namespace
}  // namespace hctr::test
