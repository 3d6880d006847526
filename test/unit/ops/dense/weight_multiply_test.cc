#include "ops/dense/weight_multiply.h"

#include <gtest/gtest.h>

#include "core/device/lockstep.h"
#include "ops/dense/prelu.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

/// The weights are one row, so they are dense in every layout. `last`: whether the backward pass defers its last
/// launches.
void weight_multiply_cases(auto& test, int64_t slots, int64_t dim, bool last = false) {
  test.row("typical", {{"x", {70, slots}}, {"w", {1, slots * dim}}});
  test.row("one row", {{"x", {1, slots}}, {"w", {1, slots * dim}}});
  test.row("no rows", {{"x", {0, slots}}, {"w", {1, slots * dim}}});
  test.large("large", {{"x", {40000, slots}}, {"w", {1, slots * dim}}});
  test.rounding(Rounding::sum);
  test.forward([=](Rig& t) {
    ops::weight_multiply(t.ctx, t["x"], t["w"].reshaped({slots, dim}), t.out("y", {t["x"].dim(0), slots * dim}));
  });
  test.backward([=](Rig& t) {
    Lockstep launches(t.ctx);
    Context ctx = last ? t.ctx.with_last_launches(&launches) : t.ctx;
    ops::weight_multiply_backward(ctx, t["x"], t["w"].reshaped({slots, dim}), t.d("y"),
                                  t.scratch("scratch", ops::weight_multiply_scratch(t["x"].dim(0), slots, dim)),
                                  t.d("x"), t.out("d_w", {1, slots * dim}, Type::wide).reshaped({slots, dim}));
    launches.run();
  });
  test.expected([=](const auto& t) {
    std::vector<double> y;
    for (size_t i = 0; i < t["x"].size(); ++i)
      for (size_t k = 0; k < static_cast<size_t>(dim); ++k)
        y.push_back(t["x"][i] * t["w"][i % static_cast<size_t>(slots) * static_cast<size_t>(dim) + k]);
    t.expect("y", y);
  });
}

OP_TEST(WeightMultiply) { weight_multiply_cases(*this, 26, 11); }
OP_TEST(WeightMultiplyOfPacks) { weight_multiply_cases(*this, 8, 16); }
OP_TEST(WeightMultiplyWithGradientsAtTheEnd) { weight_multiply_cases(*this, 13, 10, true); }
OP_TEST(WeightMultiplyOfOne) { weight_multiply_cases(*this, 5, 1); }

void prelu_cases(auto& test, int64_t width, int64_t slopes) {
  test.row("typical", {{"x", {70, width}}, {"alpha", {1, slopes}}});
  test.row("three dimensions", {{"x", {9, 3, width}}, {"alpha", {1, slopes}}});
  test.row("no rows", {{"x", {0, width}}, {"alpha", {1, slopes}}});
  test.large("large", {{"x", {40000, width}}, {"alpha", {1, slopes}}});
  test.rounding(slopes == 1 ? Rounding::chain : Rounding::sum);
  test.forward([](Rig& t) { ops::prelu(t.ctx, t["x"], t["alpha"], t.out("y", t["x"].shape())); });
  test.backward([](Rig& t) {
    ops::prelu_backward(t.ctx, t["x"], t["alpha"], t.d("y"),
                        t.scratch("scratch", ops::prelu_scratch(t["x"].rows(), t["x"].row_elements())), t.d("x"),
                        t.out("d_alpha", t["alpha"].shape(), Type::wide));
  });
  test.expected([=](const auto& t) {
    std::vector<double> y = t["x"];
    for (size_t i = 0; i < y.size(); ++i)
      if (y[i] < 0) y[i] *= t["alpha"][i % static_cast<size_t>(slopes)];
    t.expect("y", y);
  });
}

OP_TEST(Prelu) { prelu_cases(*this, 37, 37); }
OP_TEST(PreluOfPacks) { prelu_cases(*this, 64, 64); }
OP_TEST(PreluShared) { prelu_cases(*this, 37, 1); }

}  // namespace
}  // namespace hctr::test
