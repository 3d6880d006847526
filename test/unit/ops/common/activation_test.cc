#include "ops/common/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/op_test.h"

namespace hctr::test {
namespace {

using ops::Activation;

/// Registers the test cases for forward and backward of an activation. `f`: mathematical definition of the activation.
template <class F>
void activation_cases(Activation activation, F f, auto& test) {
  test.row("typical", {{"x", {64, 33}, -4, 4}});
  test.row("wide rows", {{"x", {3, 1026}, -4, 4}});
  test.row("far from zero", {{"x", {2, 40}, -90, 90}});
  test.row("one element", {{"x", {1, 1}}});
  test.row("no rows", {{"x", {0, 5}}});
  test.forward([=](Rig& t) { ops::activate(t.ctx, activation, t["x"], t.out("y", t["x"].shape())); });
  test.backward([=](Rig& t) { ops::activate_backward(t.ctx, activation, t["x"], t.d("y"), t.d("x")); });
  test.expected([=](const auto& t) {
    std::vector<double> y;
    for (const double x : t["x"]) y.push_back(f(x));
    t.expect("y", y);
  });
}

constexpr double kAlpha = 0.3f;

void expect_nan_kept(Activation::Kind kind) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"x", {1, 1}, NAN, NAN}}, {}});
  ops::activate(t.ctx, {kind, 1}, t["x"], t.out("y", {1, 1}));
  t.fetch();
  EXPECT_TRUE(std::isnan(t.values("y")[0]));
}

}  // namespace

#define ACTIVATION_TEST(Name, kind, formula)                                                                         \
  OP_TEST(Name) {                                                                                                    \
    rounding(Rounding::function);                                                                                    \
    activation_cases({Activation::Kind::kind, static_cast<float>(kAlpha)}, [](double x) { return formula; }, *this); \
  }                                                                                                                  \
  TEST(ActivationOp, Name##KeepsNan) { expect_nan_kept(Activation::Kind::kind); }

ACTIVATION_TEST(Relu, relu, std::max(x, 0.0))
ACTIVATION_TEST(Elu, elu, x < 0 ? kAlpha * (std::exp(x) - 1) : x)
ACTIVATION_TEST(LeakyRelu, leaky_relu, x < 0 ? kAlpha * x : x)
ACTIVATION_TEST(Sigmoid, sigmoid, 1 / (1 + std::exp(-x)))
ACTIVATION_TEST(Tanh, tanh, std::tanh(x))
ACTIVATION_TEST(Gelu, gelu, x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))))
ACTIVATION_TEST(Silu, silu, x / (1 + std::exp(-x)))

namespace {

OP_TEST(ReluInPlace) {
  row("typical", {{"x", {64, 33}}, {"dy", {64, 33}}});
  large("large", {{"x", {5000, 1031}}, {"dy", {5000, 1031}}});
  rounding(Rounding::none);
  forward([](Rig& t) {
    ops::activate_backward(t.ctx, {}, t["x"], t.inout("dy"), t.inout("dy"));
    ops::activate(t.ctx, {}, t.inout("x"), t.inout("x"));
  });
}

TEST(ActivationOp, ReluHasNoGradientAtZero) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"x", {1, 1}, 0, 0}, {"dy", {1, 1}, 5, 5}}, {}});
  ops::activate_backward(t.ctx, {}, t["x"], t["dy"], t.out("dx", {1, 1}));
  t.fetch();
  EXPECT_EQ(t.values("dx")[0], 0);
}

}  // namespace
}  // namespace hctr::test
