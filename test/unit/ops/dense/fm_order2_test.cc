#include "ops/dense/fm_order2.h"

#include <gtest/gtest.h>

#include "support/op_test.h"

namespace hctr::test {
namespace {

void fm_cases(auto& test, int64_t dim) {
  test.forward([=](Rig& t) { ops::fm_order2(t.ctx, t["x"], t.out("y", {t["x"].dim(0), dim})); });
  test.backward([=](Rig& t) { ops::fm_order2_backward(t.ctx, t["x"], t.d("y"), t.d("x")); });
  test.rounding(Rounding::sum);
}

OP_TEST(FmOrder2) {
  row("typical", {{"x", {64, 26 * 16}}});
  row("one slot gives zero", {{"x", {3, 16}}});
  row("no rows", {{"x", {0, 32}}});
  large("large", {{"x", {20000, 26 * 16}}});
  fm_cases(*this, 16);
  expected([](const auto& t) {  // sums over pairs of vectors one by one
    const std::vector<double> x = t["x"];
    const size_t rows = t["y"].size() / 16, slots = rows == 0 ? 0 : x.size() / rows / 16;
    std::vector<double> y(rows * 16, 0.0);
    for (size_t b = 0; b < rows; ++b)
      for (size_t k = 0; k < 16; ++k)
        for (size_t i = 0; i < slots; ++i)
          for (size_t j = 0; j < i; ++j) y[b * 16 + k] += x[(b * slots + i) * 16 + k] * x[(b * slots + j) * 16 + k];
    t.expect("y", y);
  });
}

OP_TEST(FmOrder2OfOddWidth) {
  row("odd", {{"x", {7, 3 * 11}}});
  fm_cases(*this, 11);
}

/// The vector size is no multiple of the pack size. The row size is a multiple, or rows are padded. Some inputs exceed
/// one block.
OP_TEST(FmOrder2OfNarrowVectors) {
  row("many slots", {{"x", {67, 40 * 10}}});
  row("one slot", {{"x", {18, 10}}});
  row("no rows", {{"x", {0, 30}}});
  row("one row", {{"x", {1, 39 * 10}}});
  row("too wide for shared memory", {{"x", {5, 150 * 10}}});
  large("large", {{"x", {600000, 39 * 10}}});
  fm_cases(*this, 10);
}

}  // namespace
}  // namespace hctr::test
