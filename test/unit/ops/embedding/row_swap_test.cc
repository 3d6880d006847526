// Swaps of rows by access count, compared with loops over all rows.
#include "ops/embedding/row_swap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

using ops::UseCounts;

/// The access count of the row with the i-th highest (or lowest) count.
int use_at(const UseCounts& counts, int64_t i, bool most_used) {
  for (int u = 0; u < 256; ++u) {
    const int use = most_used ? 255 - u : u;
    i -= counts[static_cast<size_t>(use)];
    if (i < 0) return use;
  }
  return -1;
}

TEST(PlanSwaps, PairsTheMostUsedWithTheLeastUsedAsLongAsItPays) {
  std::mt19937_64 random(5);
  bool some = false, bounded = false;
  for (int turn = 0; turn < 300; ++turn) {
    UseCounts device{}, host{};
    for (UseCounts* counts : {&device, &host})
      for (int64_t n = static_cast<int64_t>(random() % 12); n > 0; --n)
        (*counts)[random() % (random() % 256 + 1)] += static_cast<int64_t>(random() % 20);
    const auto most = static_cast<int64_t>(random() % 40);
    const ops::SwapPlan plan = ops::plan_swaps(device, host, most);
    int64_t expected = 0;
    while (expected < most) {
      const int hot = use_at(host, expected, true), cold = use_at(device, expected, false);
      if (hot < 0 || cold < 0 || hot < 2 * cold + 2) break;
      ++expected;
    }
    ASSERT_EQ(plan.count, expected);
    some = some || expected > 0;
    bounded = bounded || (expected == most && most > 0);
    if (expected == 0) continue;
    ASSERT_EQ(plan.hot_limit, use_at(host, expected - 1, true));
    ASSERT_EQ(plan.cold_limit, use_at(device, expected - 1, false));
    int64_t above = 0, below = 0;
    for (int u = plan.hot_limit + 1; u < 256; ++u) above += host[static_cast<size_t>(u)];
    for (int u = 0; u < plan.cold_limit; ++u) below += device[static_cast<size_t>(u)];
    ASSERT_EQ(plan.hot_beyond, above);
    ASSERT_EQ(plan.cold_beyond, below);
  }
  EXPECT_TRUE(some && bounded);
}

class RowSwapTest : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (GetParam().is_cuda()) HCTR_SKIP_WITHOUT_GPU();
    runtime_.emplace(GetParam(), RuntimeOptions{});
    ctx_.emplace(*runtime_, runtime_->compute_stream());
  }
  template <class T>
  Buffer upload(const std::vector<T>& values) {
    Buffer buffer(GetParam(), values.size() * sizeof(T));
    copy_bytes(runtime_->compute_stream(), buffer.data(), values.data(), buffer.bytes());
    runtime_->compute_stream().synchronize();
    return buffer;
  }
  template <class T>
  std::vector<T> download(const Buffer& buffer) {
    std::vector<T> values(buffer.bytes() / sizeof(T));
    copy_bytes(runtime_->compute_stream(), values.data(), buffer.data(), buffer.bytes());
    runtime_->compute_stream().synchronize();
    return values;
  }
  static const int32_t* words(const Buffer& buffer) { return reinterpret_cast<const int32_t*>(buffer.data()); }
  static uint8_t* octets(const Buffer& buffer) { return reinterpret_cast<uint8_t*>(buffer.data()); }

  std::optional<Runtime> runtime_;
  std::optional<Context> ctx_;
};
INSTANTIATE_TEST_SUITE_P(Device, RowSwapTest, testing::Values(kCpu, kGpu),
                         [](const auto& each) { return each.param.is_cuda() ? "cuda" : "cpu"; });

TEST_P(RowSwapTest, CountsAndSelectsInTheOrderOfRows) {
  std::mt19937_64 random(7);
  for (const int64_t rows : {1, 31, 4096, 4097, 70001}) {
    std::vector<uint8_t> uses(static_cast<size_t>(rows) + 1);
    for (uint8_t& use : uses) use = static_cast<uint8_t>(random() % 4 == 0 ? random() % 256 : 0);
    const Buffer on_device = upload(uses);
    const Buffer scratch(GetParam(), ops::swap_scratch_bytes(GetParam(), rows));
    for (const int64_t first : {int64_t{1}, rows / 3 + 1}) {
      UseCounts counts, expected{};
      for (int64_t row = first; row <= rows; ++row) ++expected[uses[static_cast<size_t>(row)]];
      ops::count_uses(*ctx_, octets(on_device), first, rows, scratch.data(), counts);
      EXPECT_EQ(counts, expected);
      for (const auto& [low, high] : {std::pair(0, 0), std::pair(3, 255), std::pair(0, 255)}) {
        std::vector<int32_t> all;
        for (int64_t row = first; row <= rows; ++row)
          if (uses[static_cast<size_t>(row)] >= low && uses[static_cast<size_t>(row)] <= high)
            all.push_back(static_cast<int32_t>(row));
        for (const size_t most : {all.size(), all.size() / 2}) {
          std::vector<int32_t> wanted(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(most));
          wanted.push_back(-7);  // a guard value, which must not be overwritten
          const Buffer out = upload(std::vector<int32_t>(most + 1, -7));
          ops::select_by_uses(*ctx_, octets(on_device), first, rows, low, high, static_cast<int64_t>(most),
                              scratch.data(), reinterpret_cast<int32_t*>(out.data()));
          EXPECT_EQ(download<int32_t>(out), wanted)
              << rows << " rows from " << first << ", uses " << low << " to " << high << ", " << most;
        }
      }
    }
  }
}

TEST_P(RowSwapTest, ABatchAddsOneUseToEachOfItsRows) {
  // Two keys without a row, three keys of row 3, and one key each of rows 5 and 9. Rows below 5 are on the device.
  const Buffer rows = upload<int32_t>({0, 0, 3, 3, 3, 5, 9}), run_begin = upload<int32_t>({2, 5, 6}),
               counts = upload<int32_t>({3, 0, 0}), uses = upload<uint8_t>({7, 0, 0, 254, 0, 255, 0, 0, 0, 1}),
               reads = upload<uint64_t>({10, 20});
  ops::RowGroups groups;
  groups.rows = reinterpret_cast<int32_t*>(rows.data());
  groups.run_begin = reinterpret_cast<int32_t*>(run_begin.data());
  groups.counts = reinterpret_cast<ops::GroupCounts*>(counts.data());
  ops::add_uses(*ctx_, groups, 7, {octets(uses), reinterpret_cast<uint64_t*>(reads.data()), 5});
  EXPECT_EQ(download<uint8_t>(uses), (std::vector<uint8_t>{7, 0, 0, 255, 0, 255, 0, 0, 0, 2}));
  EXPECT_EQ(download<uint64_t>(reads), (std::vector<uint64_t>{15, 23}));
}

TEST_P(RowSwapTest, SwapsRowsOfAnyWidth) {
  const std::vector<int32_t> one = {2, 9, 4}, other = {7, 1, 8};
  const Buffer ones = upload(one), others = upload(other);
  for (const int64_t bytes : {1, 2, 4, 6, 12, 16, 80}) {
    std::vector<uint8_t> column(static_cast<size_t>(10 * bytes));
    for (size_t i = 0; i < column.size(); ++i) column[i] = static_cast<uint8_t>(i * 37 + 11);
    const Buffer on_device = upload(column);
    ops::swap_rows(*ctx_, words(ones), words(others), 3, on_device.data(), bytes);
    for (size_t i = 0; i < one.size(); ++i)
      std::swap_ranges(column.begin() + one[i] * bytes, column.begin() + (one[i] + 1) * bytes,
                       column.begin() + other[i] * bytes);
    EXPECT_EQ(download<uint8_t>(on_device), column) << bytes;
  }
}

TEST_P(RowSwapTest, PlacesMarksAndHalves) {
  // Rows 1 to 4, of which 1 and 3 were swapped, so memory slot 1 contains row 3.
  const Buffer numbers = upload<int32_t>({0, 3, 2, 1, 4}), places = upload<int32_t>({0, 1, 2, 3, 4}),
               moved = upload<int32_t>({1, 3});
  ops::note_places(*ctx_, words(moved), 2, words(numbers), reinterpret_cast<int32_t*>(places.data()));
  EXPECT_EQ(download<int32_t>(places), (std::vector<int32_t>{0, 3, 2, 1, 4}));
  const Buffer rows = upload<int32_t>({3, 0, 4, 1});
  ops::find_places(*ctx_, words(places), 4, reinterpret_cast<int32_t*>(rows.data()));
  EXPECT_EQ(download<int32_t>(rows), (std::vector<int32_t>{1, 0, 4, 3}));
  const Buffer marks = upload<uint8_t>({0, 0, 1, 0, 0});
  ops::mark_rows(*ctx_, words(moved), 2, octets(marks), 2);
  ops::mark_rows(*ctx_, words(upload<int32_t>({2, 3})), 2, octets(marks), 1);
  EXPECT_EQ(download<uint8_t>(marks), (std::vector<uint8_t>{0, 2, 1, 3, 0}));
  const Buffer uses = upload<uint8_t>({9, 0, 1, 2, 255});
  ops::halve_uses(*ctx_, 4, octets(uses));
  EXPECT_EQ(download<uint8_t>(uses), (std::vector<uint8_t>{9, 0, 0, 1, 127}));
}

}  // namespace
}  // namespace hctr::test
