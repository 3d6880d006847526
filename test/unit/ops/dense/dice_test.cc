// Dice statistics, forward and backward, for batches that are divided among ranks and have padding rows.
// layer_rows_test.cc tests whole batches.
#include "ops/dense/dice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "support/op_test.h"

namespace hctr::test {
namespace {

constexpr float kDiceAlpha = 0.2f, kDiceEps = 1e-3f;

void run_dice(Rig& t) {
  const Tensor x = t["x"];
  const int64_t n = x.dim(1);
  const Tensor start = t.out("start", {n + 1}, Type::wide), batch = t.out("batch", {2, n}, Type::wide),
               parts = t.scratch("parts", ops::column_sums_scratch(n)),
               d_sums = t.out("sums_of_dy", {2, n}, Type::wide);
  ops::dice_start(t.ctx, x, start);
  ops::dice_sums(t.ctx, x, start, parts, batch);
  ops::dice_statistics(t.ctx, start, kDiceEps, batch);
  ops::dice(t.ctx, x, kDiceAlpha, batch, t.out("y", x.shape()));
  ops::dice_backward_sums(t.ctx, x, t.d("y"), kDiceAlpha, batch, parts, d_sums);
  ops::dice_backward(t.ctx, x, t.d("y"), kDiceAlpha, start, batch, d_sums, t.d("x"));
}

void expect_mean_and_variance(const OpTest::ByHand& t, size_t valid) {
  const std::vector<double> x = t["x"];
  const size_t n = t.size("x", 1);
  std::vector<double> batch(2 * n);
  for (size_t j = 0; j < n; ++j) {
    double mean = 0, variance = 0;
    for (size_t b = 0; b < valid; ++b) mean += x[b * n + j] / static_cast<double>(valid);
    for (size_t b = 0; b < valid; ++b)
      variance += (x[b * n + j] - mean) * (x[b * n + j] - mean) / static_cast<double>(valid);
    batch[j] = mean;
    batch[n + j] = 1 / std::sqrt(variance + static_cast<double>(kDiceEps));
  }
  t.expect("batch", batch);
}

OP_TEST(DiceOfABatchWithPadding) {
  row("typical", {{"x", {64, 12}}});
  row("far from zero", {{"x", {64, 9}, 90, 110}});
  state({.valid_samples = 41, .global_samples = 41, .loss_scale = 1});
  rounding(Rounding::sum);
  dense_only();
  // No gradient check: the kernel ignores dy of padding rows, because a loss sets it to 0.
  forward(run_dice);
  expected([](const auto& t) {
    expect_mean_and_variance(t, 41);
    const std::vector<double> dx = t["d_x"];
    for (size_t i = 41 * t.size("x", 1); i < dx.size(); ++i) EXPECT_EQ(dx[i], 0) << i;
  });
}

TEST(DiceOp, ABatchWithoutRowsHasNoGradient) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"x", {4, 2}}}, {.valid_samples = 0, .samples = 4}});
  run_dice(t);
  t.fetch();
  EXPECT_EQ(t.values("start"), std::vector<double>(3, 0));
  EXPECT_EQ(t.values("d_x"), std::vector<double>(8, 0));
}

/// The rows of a batch are divided among several ranks, which sum their tensors between the calls. The result must
/// equal that of one rank with all rows.
TEST(DiceOp, RanksThatAddTheirSumsHaveTheStatisticsAndGradientsOfTheWholeBatch) {
  const int64_t n = 5, rows = 30;
  const std::vector<int64_t> shares = {13, 0, 16, 1};
  const auto setup = [&](int64_t valid) {
    return Rig::Setup{{},
                      DType::f64,
                      DType::f32,
                      {{"dense"}},
                      1,
                      {{"x", {rows, n}, 90, 110}, {"dy", {rows, n}}},
                      {.valid_samples = static_cast<int32_t>(valid), .samples = static_cast<int32_t>(rows)}};
  };
  Rig whole(setup(rows));
  const auto start_of = [&](Rig& t) { return t.out("start", {n + 1}, Type::wide); };
  const auto batch_of = [&](Rig& t) { return t.out("batch", {2, n}, Type::wide); };
  const auto d_sums_of = [&](Rig& t) { return t.out("sums_of_dy", {2, n}, Type::wide); };
  const auto parts = [&](Rig& t) { return t.scratch("parts", ops::column_sums_scratch(n)); };
  std::vector<std::unique_ptr<Rig>> ranks;
  for (const int64_t share : shares) ranks.push_back(std::make_unique<Rig>(setup(share)));
  whole["x"], whole["dy"];
  for (int64_t row = 0, r = 0, of_rank = 0; row < rows;
       ++row, ++of_rank) {  // iterates over the rows of the whole batch, rank by rank
    while (of_rank == shares[static_cast<size_t>(r)]) ++r, of_rank = 0;
    Rig& rank = *ranks[static_cast<size_t>(r)];
    for (const char* name : {"x", "dy"})
      std::copy_n(whole[name].row_range(row, row + 1).data<const double>(), n,
                  rank[name].row_range(of_rank, of_rank + 1).data<double>());
  }
  const auto on_all = [&](const std::function<void(Rig&)>& call) {
    call(whole);
    for (auto& rank : ranks) call(*rank);
  };
  const auto add_up = [&](const std::function<Tensor(Rig&)>& of) {
    std::vector<double> sum(static_cast<size_t>(of(whole).elements()));
    for (auto& rank : ranks)
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += of(*rank).data<double>()[i];
    for (auto& rank : ranks) std::copy(sum.begin(), sum.end(), of(*rank).data<double>());
  };
  on_all([&](Rig& t) { ops::dice_start(t.ctx, t["x"], start_of(t)); });
  add_up(start_of);
  on_all([&](Rig& t) { ops::dice_sums(t.ctx, t["x"], start_of(t), parts(t), batch_of(t)); });
  add_up(batch_of);
  on_all([&](Rig& t) { ops::dice_statistics(t.ctx, start_of(t), kDiceEps, batch_of(t)); });
  on_all([&](Rig& t) {
    ops::dice_backward_sums(t.ctx, t["x"], t["dy"], kDiceAlpha, batch_of(t), parts(t), d_sums_of(t));
  });
  add_up(d_sums_of);
  on_all([&](Rig& t) {
    ops::dice_backward(t.ctx, t["x"], t["dy"], kDiceAlpha, start_of(t), batch_of(t), d_sums_of(t),
                       t.out("dx", {rows, n}));
  });
  int64_t row = 0;
  for (size_t r = 0; r < ranks.size(); row += shares[r++])
    for (int64_t i = 0; i < shares[r] * n; ++i)
      EXPECT_NEAR(ranks[r]->out("dx", {rows, n}).data<double>()[i],
                  whole.out("dx", {rows, n}).data<double>()[row * n + i], 1e-10)
          << "rank " << r;
}

}  // namespace
}  // namespace hctr::test
