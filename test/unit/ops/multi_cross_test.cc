#include "ops/multi_cross.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/cross_gate.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

ops::CrossWeights weights_of(Rig& t, int layers) {
  ops::CrossWeights weights;
  for (int l = 0; l < layers; ++l) {
    weights.w.push_back(t[cat("w", l)]);
    weights.b.push_back(t[cat("b", l)]);
  }
  return weights;
}

ops::CrossWeights gradients_of(Rig& t, int layers) {
  ops::CrossWeights gradients;
  for (int l = 0; l < layers; ++l) {
    gradients.w.push_back(t.out(cat("d_w", l), t[cat("w", l)].shape(), Type::wide));
    gradients.b.push_back(t.out(cat("d_b", l), t[cat("b", l)].shape(), Type::wide));
  }
  return gradients;
}

std::vector<Input> cross_inputs(int64_t batch, int64_t dim, int layers) {
  std::vector<Input> all = {{"x", {batch, dim}}};
  const double scale = 1.5 / std::sqrt(static_cast<double>(dim));
  for (int l = 0; l < layers; ++l) {
    all.push_back({cat("w", l), {1, dim}, -scale, scale});
    all.push_back({cat("b", l), {1, dim}});
  }
  return all;
}

Tensor scratch_of(Rig& t, int layers) {
  return t.scratch("scratch", ops::multi_cross_scratch(t["x"].dim(0), t["x"].dim(1), layers));
}

void cross_cases(auto& test, int layers) {
  test.row("typical", cross_inputs(67, 429, layers));
  test.row("packs", cross_inputs(33, 64, layers));
  test.row("one column", cross_inputs(5, 1, layers));
  test.row("one row", cross_inputs(1, 37, layers));
  test.row("no rows", cross_inputs(0, 6, layers));
  test.row("several parts", cross_inputs(300, 21, layers));
  test.large("large", cross_inputs(40000, 429, layers));
  test.rounding(Rounding::chain);
  test.forward([=](Rig& t) {
    ops::multi_cross(t.ctx, t["x"], weights_of(t, layers), scratch_of(t, layers), t.out("y", t["x"].shape()));
  });
  test.backward([=](Rig& t) {
    ops::multi_cross_backward(t.ctx, t["x"], weights_of(t, layers), t.d("y"), scratch_of(t, layers), t.d("x"),
                              gradients_of(t, layers));
  });
}

OP_TEST(MultiCross) {
  cross_cases(*this, 3);
  expected([](const auto& t) {
    const std::vector<double> x = t["x"];
    const size_t dim = t["w0"].size();
    std::vector<double> y = x;
    for (size_t row = 0; row < x.size(); row += dim)
      for (int l = 0; l < 3; ++l) {
        const std::vector<double> w = t[cat("w", l)], b = t[cat("b", l)];
        double h = 0;
        for (size_t k = 0; k < dim; ++k) h += y[row + k] * w[k];
        for (size_t k = 0; k < dim; ++k) y[row + k] += x[row + k] * h + b[k];
      }
    t.expect("y", y);
  });
}

OP_TEST(MultiCrossOfOneLayer) { cross_cases(*this, 1); }
OP_TEST(MultiCrossOfManyLayers) { cross_cases(*this, 10); }

OP_TEST(CrossGate) {
  row("typical", {{"x", {19, 33}}, {"t", {19, 33}}, {"skip", {19, 33}}});
  row("packs", {{"x", {19, 64}}, {"t", {19, 64}}, {"skip", {19, 64}}});
  forward([](Rig& t) { ops::cross_gate(t.ctx, t["x"], t["t"], t["skip"], t.out("y", t["x"].shape())); });
  backward([](Rig& t) {
    ops::cross_gate_backward(t.ctx, t["x"], t["t"], t.d("y"), false, t.d("t"),
                             t.out("d_x", t["x"].shape(), Type::wide));
  });
  expected([](const auto& t) {
    std::vector<double> y = t["skip"];
    for (size_t i = 0; i < y.size(); ++i) y[i] += t["x"][i] * t["t"][i];
    t.expect("y", y);
  });
}

OP_TEST(CrossGateOnto) {
  row("typical", {{"x", {19, 33}}, {"t", {19, 33}}, {"dy", {19, 33}}, {"total", {19, 33}, -1, 1, Type::wide}});
  forward([](Rig& t) {
    ops::cross_gate_backward(t.ctx, t["x"], t["t"], t["dy"], true, t.out("dt", t["x"].shape()), t.inout("total"));
    ops::add_f32(t.ctx, t["x"], t.inout("total"), t.out("y", t["x"].shape()));
  });
}

}  // namespace
}  // namespace hctr::test
