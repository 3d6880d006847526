#include "ops/concat_linear.h"

#include <gtest/gtest.h>

#include "ops/linear.h"
#include "ops/reduce_axis.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

std::vector<Input> parts_of(int64_t batch, const std::vector<int64_t>& widths) {
  std::vector<Input> all;
  int64_t width = 0;
  for (size_t p = 0; p < widths.size(); ++p) {
    all.push_back({cat("x", p), {batch, widths[p]}});
    width += widths[p];
  }
  all.push_back({"w", {width, 1}});
  all.push_back({"bias", {1}});
  return all;
}

void concat_linear_case(auto& test, size_t parts) {
  test.rounding(Rounding::sum);
  test.forward([=](Rig& t) {
    std::vector<Tensor> x;
    for (size_t p = 0; p < parts; ++p) x.push_back(t[cat("x", p)]);
    ops::concat_linear(t.ctx, x, t["w"], t["bias"], t.out("y", {x[0].dim(0), 1}));
    ops::concat_linear(t.ctx, x, t["w"], std::nullopt, t.out("without_bias", {x[0].dim(0), 1}));
  });
  test.expected([=](const auto& t) {
    const size_t batch = t.size("x0", 0);
    const std::vector<double> w = t["w"];
    std::vector<double> y(batch);
    size_t first = 0;
    for (size_t p = 0; p < parts; ++p) {
      const std::string name = cat("x", p);
      const std::vector<double> x = t[name];
      const size_t width = t.size(name, 1);
      for (size_t b = 0; b < batch; ++b)
        for (size_t k = 0; k < width; ++k) y[b] += x[b * width + k] * w[first + k];
      first += width;
    }
    t.expect("without_bias", y);
    for (double& each : y) each += t["bias"][0];
    t.expect("y", y);
  });
}

OP_TEST(ConcatLinear) {
  row("typical", parts_of(67, {45, 64}));
  row("widths of packs", parts_of(33, {64, 256}));
  row("one column each", parts_of(5, {1, 1}));
  row("one row", parts_of(1, {37, 300}));
  row("no rows", parts_of(0, {6, 7}));
  large("large", parts_of(40000, {429, 1024}));
  concat_linear_case(*this, 2);
}
OP_TEST(ConcatLinearOfOnePart) {
  row("typical", parts_of(21, {19}));
  concat_linear_case(*this, 1);
}
OP_TEST(ConcatLinearOfManyParts) {
  row("typical", parts_of(35, {3, 16, 5, 40, 1, 8, 2, 24}));
  concat_linear_case(*this, ops::kMostConcatParts);
}

OP_TEST(ConcatLinearBackward) {
  rounding(Rounding::sum);
  row("typical", parts_of(67, {45, 64}));
  row("widths of packs", parts_of(33, {64, 256}));
  row("rows of many blocks", parts_of(2, {5000, 3}));
  row("one row", parts_of(1, {37, 300}));
  row("no rows", parts_of(0, {6, 7}));
  large("large", parts_of(40000, {429, 1024}));
  forward([](Rig& t) {
    ops::concat_linear(t.ctx, {t["x0"], t["x1"]}, t["w"], t["bias"], t.out("y", {t["x0"].dim(0), 1}));
  });
  backward([](Rig& t) {  // the weights as the layer does it
    const int64_t first = t["x0"].dim(1), width = t["w"].dim(0);
    ops::concat_linear_backward(t.ctx, t["w"], t.d("y"), {first, width - first}, {t.d("x0"), t.d("x1")});
    const auto of_part = [&](const char* x, int64_t begin, int64_t end) {
      ops::matmul(t.ctx, t[x], ops::Transpose::yes, t.d("y"), ops::Transpose::no, t.d("w").row_range(begin, end));
    };
    of_part("x0", 0, first);
    of_part("x1", first, width);
    ops::sum_rows(t.ctx, t.d("y"), t.d("bias"));
  });
}

/// A part whose gradient nobody needs is left out.
OP_TEST(ConcatLinearBackwardOfOnePartOnly) {
  row("typical", {{"w", {30, 1}}, {"d_y", {12, 1}}});
  forward([](Rig& t) {
    ops::concat_linear_backward(t.ctx, t["w"], t["d_y"], {11, 19}, {std::nullopt, t.out("d_x", {12, 19})});
  });
  expected([](const auto& t) {
    std::vector<double> d_x;
    for (size_t b = 0; b < 12; ++b)
      for (size_t k = 0; k < 19; ++k) d_x.push_back(t["d_y"][b] * t["w"][11 + k]);
    t.expect("d_x", d_x);
  });
}

}  // namespace
}  // namespace hctr::test
