#include "ops/dense/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/devices.h"
#include "support/message_of.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

OP_TEST(Softmax) {
  row("typical", {{"x", {64, 33}, -4, 4}});
  row("one column", {{"x", {9, 1}}});
  row("three dimensions", {{"x", {5, 4, 70}}});
  row("four dimensions", {{"x", {2, 3, 4, 5}}});
  row("no rows", {{"x", {0, 5}}});
  rounding(Rounding::stages);  // backward reads a rounded y
  forward([](Rig& t) { ops::softmax(t.ctx, t["x"], std::nullopt, t.out("y", t["x"].shape())); });
  backward([](Rig& t) { ops::softmax_backward(t.ctx, t.out("y", t["x"].shape()), std::nullopt, t.d("y"), t.d("x")); });
}

OP_TEST(SoftmaxWithAMask) {
  row("like the scores", {{"x", {6, 20}, -4, 4}, {"mask", {6, 20}, 0, 1}});
  row("one for all heads", {{"x", {2, 3, 4, 5}, -4, 4}, {"mask", {2, 1, 4, 5}, 0, 1}});
  row("one for all rows", {{"x", {2, 3, 4, 5}, -4, 4}, {"mask", {2, 1, 1, 5}, 0, 1}});
  row("one for the rows of each head", {{"x", {2, 3, 4, 5}, -4, 4}, {"mask", {2, 3, 1, 5}, 0, 1}});
  row("four dimensions for two", {{"x", {6, 20}, -4, 4}, {"mask", {6, 1, 1, 20}, 0, 1}});
  row("two dimensions for three", {{"x", {6, 3, 20}, -4, 4}, {"mask", {6, 20}, 0, 1}});
  row("one for each head", {{"x", {2, 3, 4, 5}, -4, 4}, {"mask", {2, 3, 4, 5}, 0, 1}});
  rounding(Rounding::stages);  // backward reads a rounded y
  forward([](Rig& t) { ops::softmax(t.ctx, t["x"], t["mask"], t.out("y", t["x"].shape())); });
  backward([](Rig& t) { ops::softmax_backward(t.ctx, t.out("y", t["x"].shape()), t["mask"], t.d("y"), t.d("x")); });
  expected([](const auto& t) {
    const std::vector<double> x = t["x"], mask = t["mask"];
    // extends shapes to four dimensions by inserting ones after the first dimension
    const auto four = [&](const char* name) {
      std::vector<size_t> sizes;
      for (int d = 0; d < t.rank(name); ++d) sizes.push_back(t.size(name, d));
      while (sizes.size() < 4) sizes.insert(sizes.begin() + 1, 1);
      return sizes;
    };
    const std::vector<size_t> whole = four("x"), part = four("mask");
    const size_t n = whole[3], rows = whole[2], heads = whole[1];
    std::vector<double> y(x.size());
    for (size_t r = 0; r < x.size() / n; ++r) {
      const size_t b = r / (rows * heads), h = r / rows % heads, i = r % rows;
      const size_t m = (b * part[1] + (part[1] == 1 ? 0 : h)) * part[2] + (part[2] == 1 ? 0 : i);
      double sum = 0;
      for (size_t j = 0; j < n; ++j) sum += y[r * n + j] = mask[m * n + j] < 0.5 ? 0 : std::exp(x[r * n + j]);
      for (size_t j = 0; j < n; ++j) y[r * n + j] = sum > 0 ? y[r * n + j] / sum : 1 / static_cast<double>(n);
    }
    t.expect("y", y);
  });
}

TEST(SoftmaxOp, HugeScoresDoNotOverflow) {
  for (const Device device : devices()) {
    Rig t({device, DType::f32, DType::f32, {{"dense"}}, 1, {{"x", {1, 3}, 1e30, 1e30}}, {}});
    ops::softmax(t.ctx, t["x"], std::nullopt, t.out("y", {1, 3}));
    t.fetch();
    for (const double share : t.values("y")) EXPECT_FLOAT_EQ(static_cast<float>(share), 1.0f / 3);
  }
}

TEST(SoftmaxOp, RefusesAMaskOfAnotherShape) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"x", {2, 3}}, {"mask", {2, 1}}}, {}});
  const std::string message =
      message_of(Kind::bug, [&] { ops::softmax(t.ctx, t["x"], t["mask"], t.out("y", {2, 3})); });
  EXPECT_EQ(message.rfind("softmax: a mask of shape [2,1] for [2,3]", 0), 0u) << message;
}

}  // namespace
}  // namespace hctr::test
