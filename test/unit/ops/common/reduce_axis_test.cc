#include "ops/common/reduce_axis.h"

#include <gtest/gtest.h>

#include "support/op_test.h"

namespace hctr::test {
namespace {

void axis_cases(auto& test, int axis, float factor) {
  test.rounding(Rounding::sum);
  test.forward([=](Rig& t) {
    Shape shape = t["x"].shape();
    shape[axis] = 1;
    ops::sum_axis(t.ctx, t["x"], axis, factor, t.out("y", shape));
  });
  test.backward([=](Rig& t) { ops::spread_axis(t.ctx, t.d("y"), axis, factor, t.d("x")); });
  test.expected([=](const auto& t) {
    const std::vector<double> x = t["x"], y = t["y"];
    double all = 0, sums = 0;
    for (const double v : x) all += v * factor;
    for (const double v : y) sums += v;
    EXPECT_NEAR(sums, all, 1e-9 * (1 + static_cast<double>(x.size())));
  });
}

OP_TEST(SumOverRows) {
  row("matrix", {{"x", {300, 33}}});
  row("three dimensions", {{"x", {7, 5, 11}}});
  row("one column", {{"x", {1000, 1}}});
  axis_cases(*this, 0, 1);
}

OP_TEST(SumOverTheSecondAxis) {
  row("matrix", {{"x", {300, 26}}});
  row("wide", {{"x", {3, 1030}}});
  row("three dimensions", {{"x", {7, 5, 11}}});
  row("packs", {{"x", {7, 26, 16}}});
  row("no rows", {{"x", {0, 5, 3}}});
  large("large", {{"x", {50000, 26, 16}}});
  axis_cases(*this, 1, 1);
}

OP_TEST(MeanOverTheLastAxis) {
  row("three dimensions", {{"x", {7, 5, 11}}});
  row("long", {{"x", {3, 2, 100}}});
  row("one element", {{"x", {1, 1, 1}}});
  axis_cases(*this, 2, 0.25f);
}

TEST(ReduceAxisOp, ByHand) {
  for (int axis = 0; axis < 3; ++axis) {
    Rig t({{}, DType::f64, DType::f32, {{"dense"}}, 1, {{"x", {2, 3, 4}}}, {}});
    Shape shape{2, 3, 4};
    shape[axis] = 1;
    ops::sum_axis(t.ctx, t["x"], axis, 2, t.out("y", shape));
    t.fetch();
    std::vector<double> y(static_cast<size_t>(shape.elements()), 0.0);
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 3; ++j)
        for (int64_t k = 0; k < 4; ++k) {
          const int64_t at = ((axis == 0 ? 0 : i) * shape[1] + (axis == 1 ? 0 : j)) * shape[2] + (axis == 2 ? 0 : k);
          y[static_cast<size_t>(at)] += 2 * t.values("x")[static_cast<size_t>((i * 3 + j) * 4 + k)];
        }
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(t.values("y")[i], y[i], 1e-12);
  }
}

OP_TEST(SumRows) {
  rounding(Rounding::sum);
  row("typical", {{"x", {64, 33}}});
  row("many rows", {{"x", {3000, 3}}});
  row("many columns", {{"x", {5, 1000}}});
  row("one column", {{"x", {700, 1}}});
  row("one element", {{"x", {1, 1}}});
  row("no rows", {{"x", {0, 5}}});
  large("large", {{"x", {20000, 257}}});
  forward([](Rig& t) {
    ops::sum_rows(t.ctx, t["x"], t.out("sums", {t["x"].dim(1)}));
    ops::sum_rows(t.ctx, t["x"], t.out("wide", {t["x"].dim(1)}, Type::wide));
  });
  expected([](const auto& t) {
    std::vector<double> sums(t.size("x", 1));
    const std::vector<double> x = t["x"];
    for (size_t i = 0; i < x.size(); ++i) sums[i % sums.size()] += x[i];
    t.expect("sums", sums);
    t.expect("wide", sums);
  });
}

}  // namespace
}  // namespace hctr::test
