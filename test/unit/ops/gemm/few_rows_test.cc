// GEMMs for few rows: the division of k, the exchange of sums in a warp, and on Hopper the results.
#include "ops/gemm/few_rows.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "core/base/half.h"
#include "core/device/gpu_traits.h"
#include "core/device/scoring_scope.h"
#include "ops/gemm/linear.h"
#include "support/devices.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

const ScoringRules kFewRows{.few_rows_f32 = 64, .few_rows_half = 64};

void linear_of_scoring(Rig& t, bool relu) {
  const ScoringScope scope(kFewRows);
  ops::linear(t.ctx, t["x"], t["w"], t["bias"], t.out("y", {t["x"].dim(0), t["w"].dim(1)}), relu);
}

OP_TEST(FewRowsLinear) {
  row("one row", {{"x", {1, 64}}, {"w", {64, 32}}, {"bias", {32}}});
  row("rows and columns at the edge", {{"x", {5, 13}}, {"w", {13, 40}}, {"bias", {40}}});
  row("two blocks of k", {{"x", {2, 429}}, {"w", {429, 96}}, {"bias", {96}}});
  row("four blocks of k", {{"x", {9, 1024}}, {"w", {1024, 64}}, {"bias", {64}}});
  row("eight blocks of k", {{"x", {3, 1500}}, {"w", {1500, 48}}, {"bias", {48}}});
  row("several passes", {{"x", {4, 4500}}, {"w", {4500, 32}}, {"bias", {32}}});
  row("several tiles of rows", {{"x", {33, 300}}, {"w", {300, 128}}, {"bias", {128}}});
  row("one input", {{"x", {7, 1}}, {"w", {1, 64}}, {"bias", {64}}});
  rounding(Rounding::sum);
  forward([](Rig& t) { linear_of_scoring(t, false); });
}

OP_TEST(FewRowsLinearRelu) {
  row("one row", {{"x", {1, 429}}, {"w", {429, 1024}}, {"bias", {1024}}});
  row("several rows", {{"x", {16, 1024}}, {"w", {1024, 72}}, {"bias", {72}}});
  rounding(Rounding::sum);
  forward([](Rig& t) { linear_of_scoring(t, true); });
}

TEST(FewRows, EveryRowOfTheWeightsBelongsToOnePassOfOneBlock) {
  for (int64_t k = 1; k <= 6000; k += k < 600 ? 1 : 37) {
    const ops::FewRowsSplit split = ops::few_rows_split(k);
    std::vector<int> uses(static_cast<size_t>(k));
    for (int block = 0; block < split.blocks; ++block)
      for (int pass = 0; pass < split.passes; ++pass)
        for (int64_t row = 0; row < ops::FewRowsSplit::kRows; ++row)
          if (const int64_t at = split.first_row(block, pass) + row; at < k) ++uses[static_cast<size_t>(at)];
    ASSERT_EQ(uses, std::vector<int>(static_cast<size_t>(k), 1)) << k;
    ASSERT_TRUE(split.blocks == 1 || split.first_row(split.blocks / 2, 0) < k) << k << ": half of the blocks are idle";
  }
}

/// Simulates how the lanes of a warp exchange sums in few_rows_sm90a.cu. Each sum is a list of the weights whose
/// products it contains.
template <class T>
void expect_warps_sum_every_row() {
  using Threads = ops::FewRowsThreads<T>;
  for (int warp = 0; warp < Threads::kWarps; ++warp) {
    // [lane][column of the thread]: (row, column) of each weight in the sum
    std::array<std::array<std::vector<std::array<int, 2>>, Threads::kEach>, 32> sums;
    for (int lane = 0; lane < 32; ++lane)
      for (int c = 0; c < Threads::kEach; ++c)
        for (int load = 0; load < Threads::kLoads; ++load) {
          const int thread = 32 * warp + lane;
          sums[lane][c].push_back({Threads::row(thread, load), Threads::first_column(thread) + c});
        }
    for (int width = Threads::kEach / 2, mask = 16; width > 0; width /= 2, mask /= 2) {
      const auto before = sums;
      for (int lane = 0; lane < 32; ++lane)
        for (int c = 0; c < width; ++c) {
          const bool upper = (lane & mask) != 0;
          sums[lane][c] = before[lane][upper ? c + width : c];
          const auto& sent = before[lane ^ mask][upper ? c + width : c];
          sums[lane][c].insert(sums[lane][c].end(), sent.begin(), sent.end());
        }
    }
    std::vector<int> columns(Threads::kColumns);
    for (int lane = 0; lane < 32; ++lane) {
      ASSERT_EQ(sums[lane][0].size(), static_cast<size_t>(Threads::kLoads * 32 / Threads::kAcross));
      for (const auto& [row, column] : sums[lane][0]) ASSERT_EQ(column, Threads::column_of_lane(lane)) << row;
      ++columns[static_cast<size_t>(Threads::column_of_lane(lane))];
    }
    ASSERT_EQ(columns, std::vector<int>(Threads::kColumns, 1));
  }
  std::vector<int> rows(ops::FewRowsSplit::kRows);
  for (int thread = 0; thread < Threads::kThreads; ++thread)
    for (int load = 0; load < Threads::kLoads; ++load) ++rows[static_cast<size_t>(Threads::row(thread, load))];
  ASSERT_EQ(rows, std::vector<int>(ops::FewRowsSplit::kRows, Threads::kAcross));
}

TEST(FewRows, AWarpSumsEveryRowOfItsColumns) {
  expect_warps_sum_every_row<float>();
  expect_warps_sum_every_row<Half>();
  expect_warps_sum_every_row<BFloat16>();
}

/// The result of the first rows of a batch equals, bit for bit, the first rows of the batch's result.
TEST(FewRows, ARowHasTheSameBitsInEveryBatch) {
  HCTR_SKIP_WITHOUT_GPU();
  if (!gpu_traits(kGpu)->is_hopper()) GTEST_SKIP() << "no GPU of compute capability 9.0";
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Rig t({kGpu,
           dtype,
           dtype,
           {{"rows of 16 bytes", 8}},
           1,
           {{"x", {64, 700}}, {"w", {700, 96}}, {"bias", {96}}},
           {.step = 3, .first_sample = 40}});
    const ScoringScope scope(kFewRows);
    const std::vector<int64_t> batches = {1, 2, 3, 4, 7, 8, 9, 32, 64};
    for (const int64_t rows : batches) {
      const auto first = [&](const Tensor& all) {
        TensorSpec spec = all.spec();
        spec.shape[0] = rows;
        return Tensor(all.bytes(), spec, all.device());
      };
      ops::linear(t.ctx, first(t["x"]), t["w"], t["bias"], t.out(cat("y", rows), {rows, 96}), true);
    }
    t.fetch();
    const std::vector<double> whole = t.values("y64");
    for (const int64_t rows : batches) {
      EXPECT_EQ(t.values(cat("y", rows)), std::vector<double>(whole.begin(), whole.begin() + rows * 96))
          << name_of(dtype) << ", " << rows;
    }
  }
}

}  // namespace
}  // namespace hctr::test
