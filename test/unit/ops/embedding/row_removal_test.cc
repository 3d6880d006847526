// Row removal, compared with a sort of all rows: the selected rows, no unnecessary move of other rows, and updates of
// all columns and of the rows of a batch.
#include "ops/embedding/row_removal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

template <class T>
struct OnDeviceArray {
  OnDeviceArray(Runtime& runtime, const std::vector<T>& values)
      : buffer(runtime.device(), values.size() * sizeof(T)), count(values.size()) {
    copy_bytes(runtime.compute_stream(), buffer.data(), values.data(), buffer.bytes());
    runtime.compute_stream().synchronize();
  }
  T* data() const { return reinterpret_cast<T*>(buffer.data()); }
  std::vector<T> read(Runtime& runtime) const {
    std::vector<T> out(count);
    copy_bytes(runtime.compute_stream(), out.data(), buffer.data(), buffer.bytes());
    runtime.compute_stream().synchronize();
    return out;
  }
  Buffer buffer;
  size_t count;
};

struct PlainRow {
  uint32_t score;
  int32_t slot;
  int64_t key;
  auto rank() const { return std::tuple(score, slot, key); }
};

void check_removal(Device device, int64_t rows, int64_t leaving, int64_t staying, uint32_t scores, bool highest_first,
                   uint64_t seed) {
  SCOPED_TRACE(cat(rows, " rows, ", leaving, " leave, ", staying, " may not, ", scores, " scores"));
  Runtime& runtime = runtime_of(device);
  Context ctx(runtime, runtime.compute_stream());
  std::mt19937_64 random(seed);
  const auto n = static_cast<size_t>(rows);
  std::vector<PlainRow> plain(n + 1);
  std::vector<uint32_t> score(n + 1);
  std::vector<int32_t> slot(n + 1);
  std::vector<int64_t> key(n + 1);
  for (size_t r = 1; r <= n; ++r) {
    plain[r] = {static_cast<uint32_t>(random()) % scores, static_cast<int32_t>(random() % 3),
                static_cast<int64_t>(r * 2654435761u) * (r % 2 ? 1 : -1)};
    score[r] = plain[r].score, slot[r] = plain[r].slot, key[r] = plain[r].key;
  }
  std::vector<int32_t> batch = {0, 0};  // rows that must not be removed; some are repeated
  std::vector<bool> stays(n + 1);
  for (int64_t i = 0; i < staying; ++i) {
    batch.push_back(static_cast<int32_t>(1 + random() % n));
    if (i % 3 == 0) batch.push_back(batch.back());
    stays[static_cast<size_t>(batch.back())] = true;
  }
  std::vector<size_t> order;
  for (size_t r = 1; r <= n; ++r)
    if (!stays[r]) order.push_back(r);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return highest_first ? plain[b].rank() < plain[a].rank() : plain[a].rank() < plain[b].rank();
  });
  leaving = std::min(leaving, static_cast<int64_t>(order.size()));
  std::vector<bool> leaves(n + 1);
  for (int64_t i = 0; i < leaving; ++i) leaves[order[static_cast<size_t>(i)]] = true;

  const OnDeviceArray scores_(runtime, score);
  const OnDeviceArray slots(runtime, slot);
  const OnDeviceArray keys(runtime, key);
  const OnDeviceArray of_batch(runtime, batch);
  const Buffer block(device, ops::removal_bytes(device, rows));
  const ops::RemovalMemory memory(block.data(), rows);
  ops::set_fates(ctx, of_batch.data(), static_cast<int64_t>(batch.size()), ops::Fate::stays, memory.fates);
  ops::lowest_rows_leave(ctx, {keys.data(), slots.data(), scores_.data(), highest_first}, 1, rows, leaving, memory);
  int64_t counted = 0;
  ops::count_fates(ctx, ops::Fate::leaves, rows, memory, counted);
  EXPECT_EQ(counted, leaving);
  ops::RowMoves moves;
  ops::plan_moves(ctx, rows, memory, moves);
  ASSERT_EQ(moves.rows, rows - leaving);
  EXPECT_LE(moves.count, std::min(leaving, moves.rows));

  // Columns of every width. The bytes of a row identify its original row number.
  std::map<int64_t, std::vector<int64_t>> row_now;  // for each width, the original number of each row
  for (const int64_t width : {8, 12, 16, 48}) {
    std::vector<int32_t> words((n + 1) * static_cast<size_t>(width / 4));
    for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<int32_t>(i);
    const OnDeviceArray column(runtime, words);
    ops::move_rows(ctx, moves, column.data(), width);
    const std::vector<int32_t> moved = column.read(runtime);
    for (int64_t row = 1; row <= moves.rows; ++row) {
      const int64_t first = moved[static_cast<size_t>(row * width / 4)];
      ASSERT_EQ(first % (width / 4), 0);
      for (int64_t i = 0; i < width / 4; ++i) ASSERT_EQ(moved[static_cast<size_t>(row * width / 4 + i)], first + i);
      row_now[width].push_back(first / (width / 4));
    }
    ASSERT_EQ(row_now[width], row_now[8]);
  }
  for (const int64_t width : {1, 2}) {
    std::vector<uint16_t> numbers(n + 1);
    for (size_t r = 0; r <= n; ++r) numbers[r] = static_cast<uint16_t>(width == 2 ? r : r % 256);
    std::vector<uint8_t> narrow(numbers.begin(), numbers.end());
    const OnDeviceArray wide_column(runtime, numbers);
    const OnDeviceArray narrow_column(runtime, narrow);
    ops::move_rows(ctx, moves, width == 2 ? static_cast<void*>(wide_column.data()) : narrow_column.data(), width);
    for (int64_t row = 1; row <= moves.rows; ++row) {
      const auto at = static_cast<size_t>(row);
      const int64_t old = row_now[8][at - 1];
      ASSERT_EQ(width == 2 ? int64_t{wide_column.read(runtime)[at]} : int64_t{narrow_column.read(runtime)[at]},
                width == 2 ? old % 65536 : old % 256);
      if (row == 50) break;  // a read copies the whole column, so 50 rows suffice
    }
  }
  std::vector<bool> seen(n + 1);
  for (int64_t row = 1; row <= moves.rows; ++row) {
    const auto old = static_cast<size_t>(row_now[8][static_cast<size_t>(row - 1)]);
    ASSERT_FALSE(leaves[old] || seen[old]) << "row " << old << " is at " << row;
    seen[old] = true;
    if (static_cast<int64_t>(old) <= moves.rows) {
      ASSERT_EQ(static_cast<int64_t>(old), row) << "moved without need";
    }
  }

  std::vector<int32_t> everyone(n + 1);
  for (size_t r = 0; r <= n; ++r) everyone[r] = static_cast<int32_t>(r);
  const OnDeviceArray follows(runtime, everyone);
  const OnDeviceArray replaced(runtime, std::vector<uint64_t>{5});
  ops::follow_moves(ctx, moves, memory.fates, follows.data(), rows + 1, 77, replaced.data());
  const std::vector<int32_t> now = follows.read(runtime);
  EXPECT_EQ(now[0], 0);
  for (size_t r = 1; r <= n; ++r) {
    if (leaves[r]) {
      ASSERT_EQ(now[r], 77);
    } else {
      ASSERT_EQ(row_now[8][static_cast<size_t>(now[r] - 1)], static_cast<int64_t>(r));
    }
  }
  EXPECT_EQ(replaced.read(runtime)[0], static_cast<uint64_t>(5 + leaving));
}

TEST(RowRemoval, TheLowestLeaveAndTheOthersCloseUp) {
  uint64_t seed = 0;
  for (const Device device : devices())
    for (const uint32_t scores : {1u, 3u, 70000u, 0xffffffffu})
      for (const bool highest_first : {false, true}) {
        for (const int64_t rows : {1, 2, 7, 300, 5000}) {
          check_removal(device, rows, 0, 0, scores, highest_first, ++seed);
          check_removal(device, rows, rows / 16, rows / 3, scores, highest_first, ++seed);
          check_removal(device, rows, rows / 2, 3, scores, highest_first, ++seed);
          check_removal(device, rows, rows, 0, scores, highest_first, ++seed);
          if (::testing::Test::HasFatalFailure()) return;
        }
        if (device.is_cuda()) check_removal(device, 3'000'000, 200'000, 100'000, scores, highest_first, ++seed);
      }
}

TEST(RowRemoval, RowsBelowABoundLeave) {
  for (const Device device : devices()) {
    Runtime& runtime = runtime_of(device);
    Context ctx(runtime, runtime.compute_stream());
    const OnDeviceArray values(runtime, std::vector<uint32_t>{0, 0, 9, 3, 4, 5, 0xffffffffu, 0});
    const Buffer block(device, ops::removal_bytes(device, 7));
    const ops::RemovalMemory memory(block.data(), 7);
    ops::rows_below_leave(ctx, values.data(), 4, 2, 7, memory.fates);
    ops::RowMoves moves;
    ops::plan_moves(ctx, 7, memory, moves);
    EXPECT_EQ(moves.rows, 5);  // rows 3 and 7 are removed; row 1 was no candidate
    EXPECT_EQ(moves.count, 1);
    const OnDeviceArray rows(runtime, std::vector<int32_t>{1, 3, 6, 7, 0});
    ops::follow_moves(ctx, moves, memory.fates, rows.data(), 5, 0, nullptr);
    EXPECT_EQ(rows.read(runtime), (std::vector<int32_t>{1, 0, 3, 0, 0}));
  }
}

TEST(RowRemoval, RowsOfRecentStepsStayUntilFatesAreOpenAgain) {
  for (const Device device : devices()) {
    Runtime& runtime = runtime_of(device);
    Context ctx(runtime, runtime.compute_stream());
    using enum ops::Fate;
    const std::vector<ops::Fate> before = {open, open, leaves, open, open, stays, open, open};
    const OnDeviceArray fates(runtime, before);
    const OnDeviceArray seen(runtime, std::vector<uint32_t>{9, 9, 9, 7, 8, 3, 9, 9});
    ops::recent_rows_stay(ctx, seen.data(), 8, 2, 6, fates.data());
    EXPECT_EQ(fates.read(runtime), (std::vector<ops::Fate>{open, open, leaves, open, stays, stays, stays, open}));
    ops::open_fates(ctx, 7, fates.data());
    EXPECT_EQ(fates.read(runtime), (std::vector<ops::Fate>{open, open, leaves, open, open, open, open, open}));
    // Step numbers wrap at 2^32.
    const OnDeviceArray around(runtime, std::vector<uint32_t>{0, 0xfffffffeu, 0xffffffffu, 0, 1, 0x7fffffffu});
    const OnDeviceArray all_open(runtime, std::vector<ops::Fate>(6, open));
    ops::recent_rows_stay(ctx, around.data(), 0xffffffffu, 1, 5, all_open.data());
    EXPECT_EQ(all_open.read(runtime), (std::vector<ops::Fate>{open, open, stays, stays, stays, open}));
  }
}

TEST(RowRemoval, ScaledLog2IsExactAtPowersOfTwoAndNeverFalls) {
  for (const uint32_t unit : {0u, 1u, 7u, 1000u, 100'000'000u, 0xffffffffu}) {
    for (int power = 0; power <= 32; ++power) {
      const auto count = static_cast<uint32_t>((uint64_t{1} << power) - 1);
      EXPECT_EQ(ops::scaled_log2(count, unit), uint64_t{unit} * static_cast<uint64_t>(power)) << count;
    }
    for (uint32_t count = 1; count < 3000; ++count) {
      const auto scaled = static_cast<double>(ops::scaled_log2(count, unit));
      EXPECT_GE(ops::scaled_log2(count, unit), ops::scaled_log2(count - 1, unit));
      EXPECT_LE(std::abs(scaled - unit * std::log2(1.0 + count)), 0.087 * unit + 1);
    }
  }
}

TEST(RowRemoval, EachDoublingOfItsUsesLetsARowStayLonger) {
  for (const Device device : devices()) {
    Runtime& runtime = runtime_of(device);
    Context ctx(runtime, runtime.compute_stream());
    // With 100 steps per doubling, rows 1 to 6 have scores 250, 200, 150, 260, 320, and a score that exceeds 32 bits.
    const OnDeviceArray keys(runtime, std::vector<int64_t>{0, 6, 5, 4, 3, 2, 1});
    const OnDeviceArray seen(runtime, std::vector<uint32_t>{0, 250, 0, 0, 160, 20, 0xfffffff0u});
    const OnDeviceArray uses(runtime, std::vector<uint32_t>{0, 0, 3, 2, 1, 7, 0xffffffffu});
    const Buffer block(device, ops::removal_bytes(device, 6));
    const std::vector<std::vector<int>> leaving = {{}, {3}, {3, 2}, {3, 2, 1}, {3, 2, 1, 4}, {3, 2, 1, 4, 5}};
    for (size_t count = 0; count < leaving.size(); ++count) {
      const ops::RemovalMemory memory(block.data(), 6);
      zero_bytes(ctx.stream(), memory.fates, 7);
      ops::lowest_rows_leave(ctx,
                             {.keys = keys.data(), .scores = seen.data(), .uses = uses.data(), .per_doubling = 100}, 1,
                             6, static_cast<int64_t>(count), memory);
      std::vector<ops::Fate> expected(7, ops::Fate::open), fates(7);
      for (const int row : leaving[count]) expected[static_cast<size_t>(row)] = ops::Fate::leaves;
      copy_bytes(ctx.stream(), fates.data(), memory.fates, fates.size());
      ctx.stream().synchronize();
      EXPECT_EQ(fates, expected) << count << " leave";
    }
  }
}

}  // namespace
}  // namespace hctr::test
