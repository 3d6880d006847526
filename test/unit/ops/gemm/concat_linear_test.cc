#include "ops/gemm/concat_linear.h"

#include <gtest/gtest.h>

#include "ops/common/fill.h"
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
  backward([](Rig& t) {
    const int64_t first = t["x0"].dim(1), width = t["w"].dim(0);
    ops::concat_linear_backward(t.ctx, t["w"], t.d("y"), {{t["x0"], t.d("x0")}, {t["x1"], t.d("x1")}}, t.d("w"),
                                t.d("bias"),
                                t.scratch("sums", ops::concat_linear_scratch(t["x0"].rows(), {first, width - first})));
  });
}

std::vector<Input> backward_inputs(int64_t batch, int64_t first, int64_t second) {
  return {{"x0", {batch, first}}, {"x1", {batch, second}}, {"w", {first + second, 1}}, {"d_y", {batch, 1}}};
}

void backward_rows(auto& test) {
  test.rounding(Rounding::sum);
  test.row("typical", backward_inputs(67, 45, 64));
  test.row("widths of packs", backward_inputs(300, 64, 1024));
  test.row("one column each", backward_inputs(5, 1, 1));
  test.row("one row", backward_inputs(1, 300, 37));
  test.row("many parts of rows", backward_inputs(9000, 40, 8));
  test.large("large", backward_inputs(40000, 1024, 429));
}

/// Backward with one input after a ReLU and one input without. The gradient of the second input is not requested. The
/// wgrads are f32.
void backward_through_relu(Rig& t, const Tensor& d_bias_below) {
  const Tensor& x = t["x0"];
  ops::concat_linear_backward(t.ctx, t["w"], t["d_y"],
                              {{x, t.out("d_x0", x.shape()), {{0.5f, d_bias_below}}}, {t["x1"], std::nullopt}},
                              t.out("d_w", t["w"].shape(), Type::wide), t.out("d_bias", {1}, Type::wide),
                              t.scratch("sums", ops::concat_linear_scratch(x.rows(), {x.dim(1), t["x1"].dim(1)})));
}

OP_TEST(ConcatLinearBackwardThroughRelu) {
  backward_rows(*this);
  forward([](Rig& t) {
    const Tensor wide = t.out("d_w2", {1, 1}, Type::wide);  // not compared; only its dtype matters
    backward_through_relu(t, t.scratch("d_bias_below", TensorSpec(wide.dtype(), {t["x0"].dim(1)})));
    ops::fill(t.ctx, 0, wide);
  });
}

/// Tests only f32, in which the bias gradient sums the compared values without rounding.
OP_TEST(ConcatLinearBackwardThroughReluWithSums) {
  backward_rows(*this);
  f32_only();
  forward([](Rig& t) { backward_through_relu(t, t.out("d_bias_below", {t["x0"].dim(1)}, Type::wide)); });
  expected([](const auto& t) {
    const std::vector<double> w = t["w"], d_y = t["d_y"];
    const size_t batch = t.size("x0", 0), first = t.size("x0", 1), second = t.size("x1", 1);
    const std::vector<double> x0 = t["x0"], x1 = t["x1"];
    std::vector<double> d_x(batch * first), d_w(first + second), below(first);
    double d_bias = 0;
    for (size_t b = 0; b < batch; ++b) {
      for (size_t k = 0; k < first; ++k) {
        d_x[b * first + k] = x0[b * first + k] > 0 ? 0.5 * d_y[b] * w[k] : 0;
        below[k] += d_x[b * first + k];
        d_w[k] += x0[b * first + k] * d_y[b];
      }
      for (size_t k = 0; k < second; ++k) d_w[first + k] += x1[b * second + k] * d_y[b];
      d_bias += d_y[b];
    }
    t.expect("d_x0", d_x);
    t.expect("d_bias_below", below);
    t.expect("d_w", d_w);
    t.expect("d_bias", {d_bias});
  });
}

}  // namespace
}  // namespace hctr::test
