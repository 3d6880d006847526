#include "ops/dense/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/message_of.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

constexpr float kFactor = 0.25f, kBatchNormEps = 1e-3f;

ops::RunningStatistics running(Rig& t) { return {t.inout("mean"), t.inout("var"), t.inout("weight")}; }

std::vector<Input> batch_norm_inputs(int64_t rows, int64_t n, double low = -1, double high = 1) {
  const double middle = (low + high) / 2;
  return {{"x", {rows, n}, low, high},
          {"gamma", {n}, 0.5, 2},
          {"beta", {n}},
          {"mean", {n}, middle / 2 - 0.2, middle / 2 + 0.2, Type::wide},
          {"var", {n}, 0.1, 0.5, Type::wide},
          {"weight", {1}, 0.5, 0.5, Type::wide}};
}

void forward_of(Rig& t) {
  const int64_t n = t["x"].dim(1);
  const Tensor sums = t.out("sums", {2 * n + 1}, Type::wide),
               batch = t.out("batch", {2, n}, Type::wide).reshaped({2, n});
  const ops::RunningStatistics statistics = running(t);
  ops::batch_norm_sums(t.ctx, t["x"], statistics, t.scratch("parts", ops::column_sums_scratch(n)), sums);
  ops::batch_norm_statistics(t.ctx, sums, kFactor, kBatchNormEps, statistics, batch);
  ops::batch_norm_apply(t.ctx, t["x"], batch, t["gamma"], t["beta"], t.out("y", t["x"].shape()));
}

void backward_of(Rig& t) {
  const int64_t n = t["x"].dim(1);
  const Tensor d_sums = t.out("sums_of_dy", {2, n}, Type::wide), batch = t.out("batch", {2, n}, Type::wide);
  ops::batch_norm_backward_sums(t.ctx, t["x"], t.d("y"), batch, t.scratch("parts", ops::column_sums_scratch(n)),
                                d_sums);
  ops::batch_norm_backward(t.ctx, t["x"], t.d("y"), batch, t["gamma"], t.out("sums", {2 * n + 1}, Type::wide), d_sums,
                           t.d("x"));
}

void expect_by_hand(const OpTest::ByHand& t) {
  const std::vector<double> x = t["x"], gamma = t["gamma"], beta = t["beta"], weight = t["weight"];
  const size_t n = gamma.size(), rows = x.size() / n,
               valid = std::min<size_t>(rows, static_cast<size_t>(t.state().valid_samples));
  if (valid == 0) return;
  std::vector<double> y(x.size());
  for (size_t j = 0; j < n; ++j) {
    double mean = 0, variance = 0;
    for (size_t b = 0; b < valid; ++b) mean += x[b * n + j] / static_cast<double>(valid);
    for (size_t b = 0; b < valid; ++b)
      variance += (x[b * n + j] - mean) * (x[b * n + j] - mean) / static_cast<double>(valid);
    for (size_t b = 0; b < rows; ++b)
      y[b * n + j] =
          gamma[j] * (x[b * n + j] - mean) / std::sqrt(variance + static_cast<double>(kBatchNormEps)) + beta[j];
  }
  t.expect("y", y);
  t.expect("weight", {0.5 * 0.75 + 0.25});
}

OP_TEST(BatchNorm) {
  row("typical", batch_norm_inputs(64, 33));
  row("far from zero", batch_norm_inputs(50, 8, 90, 110));
  row("one column", batch_norm_inputs(300, 1));
  row("many columns", batch_norm_inputs(40, 260));
  rounding(Rounding::sum);
  dense_only();
  forward(forward_of);
  backward(backward_of);
  expected(expect_by_hand);
}

OP_TEST(BatchNormOfABatchWithPadding) {
  row("typical", batch_norm_inputs(64, 12));
  state({.valid_samples = 41, .global_samples = 41, .loss_scale = 1});
  rounding(Rounding::sum);
  dense_only();
  // No gradient check: the kernel ignores dy of padding rows, because a loss sets it to 0.
  forward([](Rig& t) {
    forward_of(t);
    backward_of(t);
  });
  expected([](const auto& t) {
    expect_by_hand(t);
    const std::vector<double> dx = t["d_x"];
    for (size_t i = 41 * 12; i < dx.size(); ++i) EXPECT_EQ(dx[i], 0) << i;
  });
}

OP_TEST(BatchNormOfStridedRows) {
  row("typical", {{"x", {40, 19}},
                  {"gamma", {19}},
                  {"beta", {19}},
                  {"mean", {19}, 0, 0, Type::wide},
                  {"var", {19}, 0.5, 1, Type::wide},
                  {"weight", {1}, 1, 1, Type::wide},
                  {"dy", {40, 19}}});
  rounding(Rounding::sum);

  forward([](Rig& t) {
    // The layer allocates two-row tensors separately, so they are dense.
    const Tensor batch = t.scratch("batch", TensorSpec(t.dtype() == DType::f64 ? DType::f64 : DType::f32, {38}));
    const Tensor d_sums = t.out("sums_of_dy", {38}, Type::wide), sums = t.out("sums", {39}, Type::wide);
    const Tensor parts =
        t.scratch("parts", TensorSpec(DType::f32, {ops::kRowParts * 38})).reshaped({ops::kRowParts, 38});
    const ops::RunningStatistics statistics = running(t);
    ops::batch_norm_sums(t.ctx, t["x"], statistics, parts, sums);
    ops::batch_norm_statistics(t.ctx, sums, kFactor, kBatchNormEps, statistics, batch.reshaped({2, 19}));
    ops::batch_norm_apply(t.ctx, t["x"], batch.reshaped({2, 19}), t["gamma"], t["beta"], t.out("y", {40, 19}));
    ops::batch_norm_backward_sums(t.ctx, t["x"], t["dy"], batch.reshaped({2, 19}), parts, d_sums.reshaped({2, 19}));
    ops::batch_norm_backward(t.ctx, t["x"], t["dy"], batch.reshaped({2, 19}), t["gamma"], sums,
                             d_sums.reshaped({2, 19}), t.out("dx", {40, 19}));
  });
}

OP_TEST(BatchNormOfRunningAverages) {
  row("typical",
      {{"mean", {21}, -1, 1, Type::wide}, {"var", {21}, 0.1, 1, Type::wide}, {"weight", {1}, 0.5, 0.5, Type::wide}});
  row("before any batch",
      {{"mean", {4}, 0, 0, Type::wide}, {"var", {4}, 0, 0, Type::wide}, {"weight", {1}, 0, 0, Type::wide}});
  rounding(Rounding::function);
  dense_only();

  forward([](Rig& t) {
    ops::batch_norm_running(t.ctx, {t["mean"], t["var"], t["weight"]}, kBatchNormEps,
                            t.out("batch", {2, t["mean"].dim(0)}, Type::wide));
  });
  expected([](const auto& t) {
    const double weight = t["weight"][0];
    std::vector<double> mean = t["mean"], scale = t["var"];
    for (double& m : mean) m = weight > 0 ? m / weight : 0;
    for (double& v : scale) v = 1 / std::sqrt((weight > 0 ? v / weight : 1) + static_cast<double>(kBatchNormEps));
    mean.insert(mean.end(), scale.begin(), scale.end());
    t.expect("batch", mean);
  });
}

TEST(BatchNormOp, CountsTheRowsOfSamplesWhenASampleHasSeveral) {
  Rig t({{},
         DType::f32,
         DType::f32,
         {{"dense"}},
         1,
         batch_norm_inputs(12, 2),
         {.valid_samples = 3, .global_samples = 3, .samples = 4}});
  forward_of(t);
  t.fetch();
  EXPECT_EQ(t.values("sums")[4], 9);
}

TEST(BatchNormOp, ABatchWithoutRowsDoesNotChangeTheRunningAverages) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, batch_norm_inputs(4, 2), {.valid_samples = 0, .samples = 4}});
  t["mean"], t["var"], t["weight"];
  t.fetch();
  const std::vector<double> mean = t.values("mean"), var = t.values("var");
  forward_of(t);
  backward_of(t);
  t.fetch();
  EXPECT_EQ(t.values("mean"), mean);
  EXPECT_EQ(t.values("var"), var);
  EXPECT_EQ(t.values("weight"), std::vector<double>{0.5});
  EXPECT_EQ(t.values("d_x"), std::vector<double>(8, 0));
}

TEST(BatchNormOp, RunningVarianceIsUnbiased) {
  Rig t({{},
         DType::f64,
         DType::f32,
         {{"dense"}},
         1,
         {{"x", {2, 1}},
          {"gamma", {1}},
          {"beta", {1}},
          {"mean", {1}, 0, 0, Type::wide},
          {"var", {1}, 0, 0, Type::wide},
          {"weight", {1}, 0, 0, Type::wide}},
         {.valid_samples = 2}});
  forward_of(t);
  t.fetch();
  const double d = t.values("x")[0] - t.values("x")[1];
  EXPECT_NEAR(t.values("var")[0], 0.25 * d * d / 2, 1e-9);
}

TEST(BatchNormOp, RefusesSumsOfAnotherWidth) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, batch_norm_inputs(4, 3), {.valid_samples = 4}});
  const auto wrong = [&] {
    ops::batch_norm_sums(t.ctx, t["x"], running(t), t.scratch("parts", ops::column_sums_scratch(3)),
                         t.out("sums", {6}, Type::wide));
  };
  EXPECT_EQ(message_of(Kind::bug, wrong).rfind("batch_norm_sums sums: shape [6], expected [7]", 0), 0u);
}

}  // namespace
}  // namespace hctr::test
