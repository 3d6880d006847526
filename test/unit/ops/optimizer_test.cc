#include "ops/optimizer.h"

#include <cmath>

#include "support/devices.h"
#include "support/message_of.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

using ops::Optimizer;

void sizes(auto& test, auto&& row) {
  test.dense_only();
  test.f32_only();
  row("typical", Shape{64, 33});
  row("one element", Shape{1});
  row("five", Shape{5});
  row("none", Shape{0});
  row("several pieces", Shape{40000});
}

OP_TEST(UpdateSgd) {
  sizes(*this, [this](const char* name, Shape shape) { row(name, {{"w", shape}, {"g", shape, -4, 4}}); });
  state({.learning_rate = 0.5f, .loss_scale = 4});
  forward([](Rig& t) { ops::update_dense(t.ctx, {.kind = Optimizer::Kind::sgd, .rate_factor = 0.5f}, t["g"], t.inout("w"), {}); });
}

OP_TEST(UpdateAdam) {
  sizes(*this, [this](const char* name, Shape shape) {
    row(name, {{"w", shape}, {"g", shape, -4, 4}, {"m", shape}, {"v", shape, 0, 1}});
  });
  large("large", {{"w", {5'000'011}}, {"g", {5'000'011}, -4, 4}, {"m", {5'000'011}}, {"v", {5'000'011}, 0, 1}});
  state({.step = 2, .learning_rate = 0.1f, .loss_scale = 4});
  rounding(Rounding::function);
  forward([](Rig& t) { ops::update_dense(t.ctx, {}, t["g"], t.inout("w"), {t.inout("m"), t.inout("v")}); });
}

/// Runs `steps` updates of one weight, started at 1 with gradients of 4 at loss scale 8; the weight after each.
std::vector<double> weights(Device device, const Optimizer& optimizer, int steps) {
  std::vector<double> after;
  double w = 1, m = 0, v = 0;
  for (int step = 0; step < steps; ++step) {
    Rig t({device, DType::f32, DType::f32, {{"dense"}}, 1,
           {{"w", {1}, w, w}, {"g", {1}, 4, 4}, {"m", {1}, m, m}, {"v", {1}, v, v}}, {.step = step, .learning_rate = 0.1f, .loss_scale = 8}});
    std::vector<Tensor> states;
    if (optimizer.states() == 2) states = {t.inout("m"), t.inout("v")};
    ops::update_dense(t.ctx, optimizer, t["g"], t.inout("w"), states);
    t.fetch();
    after.push_back(w = t.values("w")[0]);
    if (!states.empty()) m = t.values("m")[0], v = t.values("v")[0];
  }
  return after;
}

TEST(OptimizerOp, SgdStepsAgainstTheUnscaledGradient) {
  for (const Device device : devices()) {
    const std::vector<double> w = weights(device, {.kind = Optimizer::Kind::sgd}, 2);
    EXPECT_FLOAT_EQ(static_cast<float>(w[0]), 0.95f);
    EXPECT_FLOAT_EQ(static_cast<float>(w[1]), 0.90f);
  }
}

TEST(OptimizerOp, AdamFollowsThePaper) {
  // Algorithm 1 of the paper with bias-corrected moments, for a gradient that is 0.5 in every step.
  const Optimizer optimizer{.epsilon = 1e-8f};
  for (const Device device : devices()) {
    const std::vector<double> w = weights(device, optimizer, 3);
    double expected = 1, m = 0, v = 0;
    for (int t = 1; t <= 3; ++t) {
      m = 0.9 * m + 0.1 * 0.5;
      v = 0.999 * v + 0.001 * 0.25;
      expected -= 0.1 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
      EXPECT_NEAR(w[static_cast<size_t>(t - 1)], expected, 2e-6) << "step " << t;
    }
  }
}

TEST(OptimizerOp, AnAdamStepIsTheRateTimesTheSignAtFirst) {
  const std::vector<double> w = weights(kCpu, {}, 1);
  EXPECT_NEAR(w[0], 1 - 0.1, 1e-5);
}

TEST(OptimizerOp, RefusesTheWrongNumberOfStates) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"w", {1}}, {"g", {1}}}, {}});
  EXPECT_EQ(message_of(Kind::bug, [&] { ops::update_dense(t.ctx, {}, t["g"], t.inout("w"), {}); }).substr(0, 34), "update_dense with 0 states, not 2;");
}

}  // namespace
}  // namespace hctr::test
