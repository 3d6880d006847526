#include "ops/dense/multiply.h"

#include <gtest/gtest.h>

#include "ops/common/activation.h"
#include "ops/common/copy.h"
#include "support/message_of.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

OP_TEST(Multiply) {
  row("typical", {{"a", {64, 33}}, {"b", {64, 33}}, {"c", {64, 33}}});
  row("packs", {{"a", {5, 64}}, {"b", {5, 64}}, {"c", {5, 64}}});
  row("three dimensions", {{"a", {5, 3, 7}}, {"b", {5, 3, 7}}, {"c", {5, 3, 7}}});
  row("a factor zero", {{"a", {4, 6}, 0, 0}, {"b", {4, 6}}, {"c", {4, 6}}});
  row("two factors zero", {{"a", {4, 6}, 0, 0}, {"b", {4, 6}, 0, 0}, {"c", {4, 6}}});
  row("no rows", {{"a", {0, 4}}, {"b", {0, 4}}, {"c", {0, 4}}});
  large("large", {{"a", {5000, 1031}}, {"b", {5000, 1031}}, {"c", {5000, 1031}}});
  forward([](Rig& t) { ops::multiply(t.ctx, {t["a"], t["b"], t["c"]}, t.out("y", t["a"].shape())); });
  backward([](Rig& t) {
    ops::multiply_backward(t.ctx, {t["a"], t["b"], t["c"]}, t.d("y"), {t.d("a"), t.d("b"), t.d("c")});
  });
  expected([](const auto& t) {
    std::vector<double> y = t["a"];
    for (size_t i = 0; i < y.size(); ++i) y[i] *= t["b"][i] * t["c"][i];
    t.expect("y", y);
  });
}

OP_TEST(MultiplyWithAbsentGradients) {
  row("typical", {{"a", {64, 33}}, {"b", {64, 33}}, {"c", {64, 33}}});
  forward([](Rig& t) { ops::multiply(t.ctx, {t["a"], t["b"], t["c"]}, t.out("y", t["a"].shape())); });
  backward([](Rig& t) {
    ops::multiply_backward(t.ctx, {t["a"], t["b"], t["c"]}, t.d("y"), {std::nullopt, t.d("b"), std::nullopt});
  });
}

OP_TEST(Subtract) {
  row("typical", {{"a", {64, 33}}, {"b", {64, 33}}});
  row("no rows", {{"a", {0, 4}}, {"b", {0, 4}}});
  forward([](Rig& t) {
    ops::subtract(t.ctx, t["a"], t["b"], t.out("y", t["a"].shape()));
    ops::negate(t.ctx, t["a"], t.out("z", t["a"].shape()));
  });
  expected([](const auto& t) {
    std::vector<double> y = t["a"], z = t["a"];
    for (size_t i = 0; i < y.size(); ++i) y[i] -= t["b"][i], z[i] = -z[i];
    t.expect("y", y);
    t.expect("z", z);
  });
}

OP_TEST(ZeroWhereZero) {
  row("typical", {{"x", {64, 33}}, {"y", {64, 33}}});
  row("packs", {{"x", {5, 64}}, {"y", {5, 64}}});
  row("three dimensions", {{"x", {5, 3, 7}}, {"y", {5, 3, 7}}});
  row("no rows", {{"x", {0, 4}}, {"y", {0, 4}}});
  forward([](Rig& t) {
    const Tensor half_zero = t.out("half zero", t["x"].shape()), z = t.out("z", t["x"].shape());
    ops::activate(t.ctx, {ops::Activation::Kind::relu, 0}, t["x"], half_zero);
    ops::copy(t.ctx, t["y"], z);
    ops::zero_where_zero(t.ctx, half_zero, z);
  });
  expected([](const auto& t) {
    std::vector<double> z = t["y"];
    for (size_t i = 0; i < z.size(); ++i)
      if (t["x"][i] <= 0) z[i] = 0;
    t.expect("z", z);
  });
}

TEST(MultiplyOp, RefusesShapesThatDiffer) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"a", {4, 6}}, {"b", {6, 4}}}, {}});
  EXPECT_EQ(message_of(Kind::bug, [&] { ops::multiply(t.ctx, {t["a"], t["b"]}, t.out("y", {4, 6})); }).substr(0, 42),
            "multiply: shape [6,4], expected [4,6]; src");
}

}  // namespace
}  // namespace hctr::test
