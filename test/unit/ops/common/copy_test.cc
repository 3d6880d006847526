#include "ops/common/copy.h"

#include <gtest/gtest.h>

#include "support/message_of.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

OP_TEST(Copy) {
  row("typical", {{"x", {64, 33}}});
  row("three dimensions", {{"x", {5, 3, 8}}});
  row("one element", {{"x", {1, 1}}});
  row("one column", {{"x", {77, 1}}});
  row("no rows", {{"x", {0, 5}}});
  row("vector", {{"x", {129}}});
  row("long rows", {{"x", {37, 531}}});
  row("one long row", {{"x", {1, 90}}});
  large("large", {{"x", {5000, 1031}}});
  rounding(Rounding::none);
  forward([](Rig& t) { ops::copy(t.ctx, t["x"], t.out("y", t["x"].shape())); });
  expected([](const auto& t) { t.expect("y", t["x"]); });
}

OP_TEST(CopyConverts) {
  row("typical", {{"x", {64, 33}}, {"wide", {64, 33}, -1, 1, Type::wide}});
  row("wide range", {{"x", {9, 40}, -60000, 60000}, {"wide", {9, 40}, -1e-3, 1e-3, Type::wide}});
  row("one element", {{"x", {1, 1}}, {"wide", {1, 1}, -1, 1, Type::wide}});
  forward([](Rig& t) {
    ops::copy(t.ctx, t["x"], t.out("widened", t["x"].shape(), Type::wide));
    ops::copy(t.ctx, t["wide"], t.out("narrowed", t["x"].shape()));
  });
  expected([](const auto& t) {
    t.expect("widened", t["x"]);
    t.expect("narrowed", t["wide"]);
  });
}

OP_TEST(CopyReshapesDense) {
  row("typical", {{"x", {12, 10}}});
  dense_only();
  rounding(Rounding::none);
  forward([](Rig& t) { ops::copy(t.ctx, t["x"], t.out("y", {5, 24})); });
  expected([](const auto& t) { t.expect("y", t["x"]); });
}

TEST(CopyOp, RefusesShapesThatDoNotMatch) {
  Rig t({{}, DType::f32, DType::f32, {{"padded", 16, 16, 0}}, 1, {{"x", {4, 6}}}, {}});
  const std::string message = message_of(Kind::bug, [&] { ops::copy(t.ctx, t["x"], t.out("y", {8, 3})); });
  EXPECT_EQ(message.substr(0, message.rfind(':')),
            "copy from [4,6] with strided rows to [8,3] with strided rows; src/ops/common/copy.cc");
}

TEST(CopyOp, OntoItselfDoesNothing) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"x", {4, 6}}}, {}});
  ops::copy(t.ctx, t["x"], t["x"]);
  EXPECT_TRUE(t.fetch().empty());
}

}  // namespace
}  // namespace hctr::test
