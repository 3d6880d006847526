#include "ops/common/add.h"

#include <gtest/gtest.h>

#include "support/message_of.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

OP_TEST(Add) {
  row("typical", {{"a", {64, 33}}, {"b", {64, 33}}, {"c", {64, 33}}});
  row("wide rows", {{"a", {3, 1025}}, {"b", {3, 1025}}, {"c", {3, 1025}}});
  row("one element", {{"a", {1, 1}}, {"b", {1, 1}}, {"c", {1, 1}}});
  row("no rows", {{"a", {0, 4}}, {"b", {0, 4}}, {"c", {0, 4}}});
  large("large", {{"a", {5000, 1031}}, {"b", {5000, 1031}}, {"c", {5000, 1031}}});
  forward([](Rig& t) { ops::add(t.ctx, {t["a"], t["b"], t["c"]}, t.out("y", t["a"].shape())); });
  expected([](const auto& t) {
    std::vector<double> y = t["a"];
    const std::vector<double> b = t["b"], c = t["c"];
    for (size_t i = 0; i < y.size(); ++i) y[i] += b[i] + c[i];
    t.expect("y", y);
  });
}

OP_TEST(AddOntoAnAddend) {
  row("typical", {{"a", {7, 30}}, {"b", {7, 30}}});
  forward([](Rig& t) { ops::add(t.ctx, {t["a"], t.inout("b")}, t.inout("b")); });
}

OP_TEST(AddOfOne) {
  row("typical", {{"a", {7, 30}}});
  rounding(Rounding::none);
  forward([](Rig& t) { ops::add(t.ctx, {t["a"]}, t.out("y", {7, 30})); });
  expected([](const auto& t) { t.expect("y", t["a"]); });
}

OP_TEST(AddScaled) {
  row("typical", {{"x", {64, 33}}, {"y", {64, 33}}});
  row("one column", {{"x", {300, 1}}, {"y", {300, 1}}});
  row("no rows", {{"x", {0, 3}}, {"y", {0, 3}}});
  forward([](Rig& t) { ops::add_scaled(t.ctx, t["x"], 0.5f, t.inout("y")); });
}

TEST(AddOp, AddsScaledByHand) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"x", {1, 2}, 1, 1}, {"y", {1, 2}, 10, 10}}, {}});
  ops::add_scaled(t.ctx, t["x"], 3, t.inout("y"));
  t.fetch();
  EXPECT_EQ(t.values("y"), (std::vector<double>{13, 13}));
}

TEST(AddOp, RefusesShapesThatDiffer) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"a", {4, 6}}, {"b", {6, 4}}}, {}});
  EXPECT_EQ(message_of(Kind::bug, [&] { ops::add(t.ctx, {t["a"], t["b"]}, t.out("y", {4, 6})); }).substr(0, 39),
            "add x: shape [6,4], expected [4,6]; src");
}

}  // namespace
}  // namespace hctr::test
