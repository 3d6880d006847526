#include "ops/loss/logit_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/platform.h"
#include "ops/common/add.h"
#include "ops/gemm/concat_linear.h"
#include "ops/gemm/linear.h"
#include "support/devices.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

std::vector<Input> logit_inputs(int64_t batch, int64_t first, int64_t second) {
  std::vector<Input> all{{"x0", {batch, first}}};
  if (second > 0) all.push_back({"x1", {batch, second}});
  for (const Input& more : std::vector<Input>{{"w", {first + second, 1}, -0.2, 0.2},
                                              {"bias", {1}},
                                              {"before", {batch, 1}},
                                              {"behind", {batch, 1}},
                                              {"label", {batch, 1}, 0, 1, Type::wide},
                                              {"weights", {batch, 1}, 0, 2, Type::wide},
                                              {"blocks_done", {1}, 0, 0, Type::i32}})
    all.push_back(more);
  return all;
}

constexpr float kLogitDropout = 2, kLogitLossWeight = 0.5f, kLogitPositive = 3;

/// The first input follows a ReLU. The gradient of the second input is not requested.
ops::LogitLayer logit_layer_of(Rig& t, bool two) {
  const Tensor x0 = t["x0"];
  const int64_t first = x0.dim(1), second = t["w"].dim(0) - first;
  const Tensor below = t.out("d_below", {first}, Type::wide);
  ops::LogitLayer layer{{{x0, t.out("d_x0", x0.shape()), {{kLogitDropout, below}}}},
                        t["w"],
                        t["bias"],
                        t.out("y", {x0.rows(), 1}),
                        t.out("d_w", t["w"].shape(), Type::wide),
                        t.out("d_bias", {1}, Type::wide),
                        t.scratch("sums", ops::logit_loss_scratch(x0.rows(), {first, second}))};
  if (two) layer.inputs.push_back({t["x1"], std::nullopt});
  return layer;
}

void run_logit_loss(Rig& t, bool two, bool sum) {
  const Shape column{t["x0"].rows(), 1};
  const ops::LogitLayer layer = logit_layer_of(t, two);
  const Tensor d_logits = t.out("d_logits", column);
  std::optional<ops::LogitSum> terms;
  if (sum)
    terms = {{t["before"], layer.y, t["behind"]},
             {t.out("d_before", column), d_logits, std::nullopt},
             t.out("logits", column)};
  const ops::LogitTarget target{t["label"],
                                t.out("loss", {1}, Type::wide),
                                t.out("probability", column, Type::wide),
                                {d_logits, kLogitLossWeight},
                                {t["weights"], kLogitPositive},
                                t.inout("blocks_done")};
  ops::logit_loss(t.ctx, layer, terms, target);
  ops::logit_loss_backward(t.ctx, layer, terms, target);
}

struct LogitLossByHand {
  std::vector<double> y, logits, probability, d_logits, d_x0, d_below, d_w;
  double loss = 0, d_bias = 0;
};

LogitLossByHand logit_loss_by_hand(const OpTest::ByHand& t, bool two, bool sum) {
  const std::vector<double> x0 = t["x0"], w = t["w"], label = t["label"], weights = t["weights"];
  const std::vector<double> x1 = two ? t["x1"] : std::vector<double>{};
  const size_t batch = t.size("x0", 0), first = t.size("x0", 1), second = w.size() - first;
  const double all = t.state().global_samples;
  LogitLossByHand r;
  r.d_x0.resize(x0.size());
  r.d_below.resize(first);
  r.d_w.resize(w.size());
  for (size_t b = 0; b < batch; ++b) {
    double z = t["bias"][0];
    for (size_t k = 0; k < first; ++k) z += x0[b * first + k] * w[k];
    for (size_t k = 0; k < second; ++k) z += x1[b * second + k] * w[first + k];
    r.y.push_back(z);
    if (sum) z += t["before"][b] + t["behind"][b];
    r.logits.push_back(z);
    r.probability.push_back(1 / (1 + std::exp(-z)));
    const double shifted = z - static_cast<double>(t.state().log_negative_share), p = 1 / (1 + std::exp(-shifted));
    const bool counts = b < static_cast<size_t>(t.state().valid_samples);
    const double weight = counts ? weights[b] * (label[b] < 0.5 ? 1 : double{kLogitPositive}) : 0;
    r.loss -= weight * (label[b] * std::log(p) + (1 - label[b]) * std::log1p(-p)) / all;
    const double d =
        double{kLogitLossWeight} * static_cast<double>(t.state().loss_scale) * weight * (p - label[b]) / all;
    r.d_logits.push_back(d);
    r.d_bias += d;
    for (size_t k = 0; k < first; ++k) {
      const size_t at = b * first + k;
      r.d_x0[at] = x0[at] > 0 ? double{kLogitDropout} * d * w[k] : 0;
      r.d_below[k] += r.d_x0[at];
      r.d_w[k] += x0[at] * d;
    }
    for (size_t k = 0; k < second; ++k) r.d_w[first + k] += x1[b * second + k] * d;
  }
  return r;
}

/// `valid`: number of rows that are not padding. `all`: number of samples of the global batch. Tests only f32, because
/// other dtypes would round the logit before the loss, which is computed in f32.
void logit_loss_case(auto& test, bool two, bool sum, int32_t valid = 1 << 20, int32_t all = 700) {
  test.f32_only();
  test.rounding(Rounding::stages);
  test.state({.valid_samples = valid, .global_samples = all, .loss_scale = 64, .log_negative_share = -0.25f});
  test.forward([=](Rig& t) { run_logit_loss(t, two, sum); });
  test.expected([=](const auto& t) {
    const LogitLossByHand by_hand = logit_loss_by_hand(t, two, sum);
    t.expect("y", by_hand.y);
    if (sum) t.expect("logits", by_hand.logits);
    if (sum) t.expect("d_before", by_hand.d_logits);
    t.expect("probability", by_hand.probability);
    t.expect("loss", {by_hand.loss});
    t.expect("d_logits", by_hand.d_logits);
    t.expect("d_x0", by_hand.d_x0);
    t.expect("d_below", by_hand.d_below);
    t.expect("d_w", by_hand.d_w);
    t.expect("d_bias", {by_hand.d_bias});
    t.expect("blocks_done", {0});
  });
}

OP_TEST(LogitLoss) {
  row("typical", logit_inputs(67, 45, 64));
  row("widths of packs", logit_inputs(300, 1024, 64));
  row("a block each for few rows", logit_inputs(512, 64, 8));
  row("several turns of a block", logit_inputs(2100, 256, 24));
  row("two packs of a row a thread", logit_inputs(33, 429, 2056));
  row("one column each", logit_inputs(5, 1, 1));
  row("one row", logit_inputs(1, 304, 37));
  large("large", logit_inputs(40000, 1024, 429));
  logit_loss_case(*this, true, true);
}
OP_TEST(LogitLossOfOneInput) {
  row("typical", logit_inputs(67, 45, 0));
  row("a warp for a row", logit_inputs(512, 256, 0));
  row("a warp for a few rows", logit_inputs(2048, 256, 0));
  row("blocks without rows", logit_inputs(1030, 128, 0));
  row("half a block for a row", logit_inputs(530, 1024, 0));
  row("wider than a block", logit_inputs(35, 8192, 0));
  logit_loss_case(*this, false, true);
}
OP_TEST(LogitLossWithoutSum) {
  row("typical", logit_inputs(40, 400, 16));
  row("many rows", logit_inputs(9000, 40, 8));
  logit_loss_case(*this, true, false);
}
OP_TEST(LogitLossOfAPartOfTheRows) {
  row("typical", logit_inputs(64, 104, 16));
  logit_loss_case(*this, true, true, 13, 13);
}

struct LogitSizes {
  int64_t batch, first, second;
};

/// Runs the fused operator and the separate operators that it replaces. The separate results have names such as "y
/// alone".
Rig ran_both_ways(Device device, DType dtype, const LogitSizes& sizes) {
  const auto [batch, first, second] = sizes;
  Rig t({device,
         dtype,
         dtype,
         {{"rows of 16 bytes", 8}},
         2,
         logit_inputs(batch, first, second),
         {.valid_samples = static_cast<int32_t>(batch) - 3,
          .global_samples = static_cast<int32_t>(batch) - 2,
          .loss_scale = 64}});
  run_logit_loss(t, second > 0, true);
  const Shape column{batch, 1};
  const Tensor x0 = t["x0"], y = t.out("y alone", column), logits = t.out("logits alone", column);
  const Tensor d_logits = t.out("d_logits alone", column), below = t.out("d_below alone", {first}, Type::wide);
  std::vector<ops::ConcatLinearInput> inputs{{x0, t.out("d_x0 alone", x0.shape()), {{kLogitDropout, below}}}};
  if (second > 0) {
    inputs.push_back({t["x1"], std::nullopt});
    ops::concat_linear(t.ctx, {x0, t["x1"]}, t["w"], t["bias"], y);
  } else {
    ops::linear(t.ctx, x0, t["w"], t["bias"], y);
  }
  ops::add(t.ctx, {t["before"], y, t["behind"]}, logits);
  ops::binary_cross_entropy(t.ctx, logits, t["label"], t.out("loss alone", {1}, Type::wide),
                            t.out("probability alone", column, Type::wide), {t["weights"], kLogitPositive},
                            ops::LogitGradient{d_logits, kLogitLossWeight});
  ops::concat_linear_backward(t.ctx, t["w"], d_logits, inputs, t.out("d_w alone", t["w"].shape(), Type::wide),
                              t.out("d_bias alone", {1}, Type::wide),
                              t.scratch("sums alone", ops::concat_linear_scratch(batch, {first, second})));
  EXPECT_EQ(t.fetch(), std::vector<std::string>());
  return t;
}

/// On a CPU the results have equal bits. On a GPU the GEMM sums in another order, so a logit may be rounded
/// differently.
TEST(LogitLossOp, IsItsOperatorsOneByOne) {
  for (const Device device : devices())
    for (const auto& [dtype, tolerance] :
         {std::pair(DType::f32, 1e-5), std::pair(DType::f16, 5e-3), std::pair(DType::bf16, 4e-2)})
      for (const LogitSizes& sizes : {LogitSizes{70, 48, 64},
                                      {512, 1024, 8},
                                      {512, 256, 0},
                                      {2100, 256, 0},
                                      {1030, 250, 24},
                                      {6000, 100, 0},
                                      {33, 432, 2056},
                                      {300, 400, 0},
                                      {4, 8, 0}}) {
        // With sanitizers, f16 and smaller batches are enough, because they run the same code.
        if (kSanitized && (dtype == DType::bf16 || sizes.batch * (sizes.first + sizes.second) > 300'000)) continue;
        SCOPED_TRACE(cat(to_string(device), " ", name_of(dtype), " ", sizes.batch));
        const Rig t = ran_both_ways(device, dtype, sizes);
        for (const char* name :
             {"y", "logits", "loss", "probability", "d_logits", "d_x0", "d_below", "d_w", "d_bias"}) {
          const std::vector<double> found = t.values(name), alone = t.values(cat(name, " alone"));
          EXPECT_TRUE(device.is_cuda() || t.bytes(name) == t.bytes(cat(name, " alone"))) << name;
          double largest = 0;
          for (const double value : alone) largest = std::max(largest, std::abs(value));
          EXPECT_GT(largest, 0) << name;
          for (size_t i = 0; i < alone.size(); ++i)
            ASSERT_NEAR(found[i], alone[i], tolerance * largest) << name << " " << i;
        }
        EXPECT_EQ(t.values("d_before"), t.values("d_logits"));
        const Rig again = ran_both_ways(device, dtype, sizes);
        for (const char* name : {"loss", "probability", "d_x0", "d_below", "d_w", "d_bias"})
          EXPECT_EQ(again.bytes(name), t.bytes(name)) << name;
      }
}

TEST(LogitLossOp, NeedsTheLayerAmongTheTermsOnce) {
  Rig t({Device{}, DType::f32, DType::f32, {{"dense"}}, 1, logit_inputs(4, 8, 0), {}});
  const ops::LogitLayer layer = logit_layer_of(t, false);
  const Tensor d = t.out("d_logits", {4, 1});
  const ops::LogitSum sum{{t["before"], t["behind"]}, {d, d}, t.out("logits", {4, 1})};
  const ops::LogitTarget target{t["label"], t.out("loss", {1}),    t.out("probability", {4, 1}), {d, 1},
                                {},         t.inout("blocks_done")};
  try {
    ops::logit_loss(t.ctx, layer, sum, target);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("y is 0 terms of the sum, expected one term"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace hctr::test
