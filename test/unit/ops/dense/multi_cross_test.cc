#include "ops/dense/multi_cross.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/device/lockstep.h"
#include "ops/dense/cross_gate.h"
#include "ops/gemm/bias_gradient.h"
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

/// `last`: whether the backward pass defers its last launches.
void cross_cases(auto& test, int layers, bool last = false) {
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
    Lockstep launches(t.ctx);
    Context ctx = last ? t.ctx.with_last_launches(&launches) : t.ctx;
    ops::multi_cross_backward(ctx, t["x"], weights_of(t, layers), t.d("y"), scratch_of(t, layers), t.d("x"),
                              gradients_of(t, layers));
    launches.run();
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
OP_TEST(MultiCrossWithGradientsAtTheEnd) { cross_cases(*this, 6, true); }

Tensor bias_sums(Rig& t) { return t.scratch("sums", ops::bias_gradient_scratch(t["x"].dim(1))); }

std::vector<double> sums_of_columns(const std::vector<double>& values, size_t columns) {
  std::vector<double> sums(columns);
  for (size_t i = 0; i < values.size(); ++i) sums[i % columns] += values[i];
  return sums;
}

OP_TEST(CrossGate) {
  row("typical", {{"x", {19, 33}}, {"t", {19, 33}}, {"skip", {19, 33}}});
  row("packs", {{"x", {19, 64}}, {"t", {19, 64}}, {"skip", {19, 64}}});
  row("one row", {{"x", {1, 9}}, {"t", {1, 9}}, {"skip", {1, 9}}});
  row("no rows", {{"x", {0, 9}}, {"t", {0, 9}}, {"skip", {0, 9}}});
  rounding(Rounding::stages);  // the bias gradient sums rounded gradients
  forward([](Rig& t) { ops::cross_gate(t.ctx, t["x"], t["t"], t["skip"], t.out("y", t["x"].shape())); });
  backward([](Rig& t) {
    ops::cross_gate_backward(t.ctx, t["x"], t.d("y"), t.d("t"), t.out("d_bias", {t["x"].dim(1)}), bias_sums(t));
  });
  expected([](const auto& t) {
    std::vector<double> y = t["skip"];
    for (size_t i = 0; i < y.size(); ++i) y[i] += t["x"][i] * t["t"][i];
    t.expect("y", y);
  });
}

void cross_gate_rows(auto& test, int layers) {
  const auto row = [&](const char* title, int64_t rows, int64_t columns) {
    std::vector<Input> inputs = {{"x", {rows, columns}}};
    for (int l = 0; l < layers; ++l) {
      inputs.push_back({cat("t", l), {rows, columns}});
      inputs.push_back({cat("dy", l), {rows, columns}});
    }
    test.row(title, inputs);
  };
  row("typical", 19, 33);
  row("packs", 70, 64);
  row("several parts", 1100, 132);
  row("one row", 1, 70);
  row("one element", 1, 1);
  row("no rows", 0, 5);
  test.rounding(Rounding::stages);
}

/// The gradient of x, summed over all layers, overwrites t[0], as in the layer.
void first_cross_gate_cases(auto& test, int layers) {
  cross_gate_rows(test, layers);
  test.forward([=](Rig& t) {
    ops::CrossGates gates;
    for (int l = 0; l < layers; ++l) {
      gates.t.push_back(l == 0 ? t.inout("t0") : t[cat("t", l)]);
      gates.d_y.push_back(t[cat("dy", l)]);
    }
    ops::first_cross_gate_backward(t.ctx, t["x"], gates, t.out("d_t", t["x"].shape()), t.out("d_bias", {t["x"].dim(1)}),
                                   bias_sums(t), gates.t[0]);
  });
}

OP_TEST(FirstCrossGate) { first_cross_gate_cases(*this, 3); }
OP_TEST(FirstCrossGateOfOneLayer) { first_cross_gate_cases(*this, 1); }
// the kernel loads 12 layers in several rounds
OP_TEST(FirstCrossGateOfManyLayers) { first_cross_gate_cases(*this, 12); }

/// Runs cross_gates_gradient(), which computes only the gradient of x summed over all layers.
void cross_gates_gradient_cases(auto& test, int layers) {
  cross_gate_rows(test, layers);
  test.forward([=](Rig& t) {
    ops::CrossGates gates;
    for (int l = 0; l < layers; ++l) {
      gates.t.push_back(t[cat("t", l)]);
      gates.d_y.push_back(t[cat("dy", l)]);
    }
    ops::cross_gates_gradient(t.ctx, gates, t.out("d_x", t["t0"].shape()));
  });
  test.expected([=](const auto& t) {
    std::vector<double> d_x = t["dy0"];
    for (int l = 0; l < layers; ++l) {
      const std::vector<double> d_y = t[cat("dy", l)], factor = t[cat("t", l)];
      for (size_t i = 0; i < d_x.size(); ++i) d_x[i] += d_y[i] * factor[i];
    }
    t.expect("d_x", d_x);
  });
}

OP_TEST(CrossGatesGradient) { cross_gates_gradient_cases(*this, 3); }
OP_TEST(CrossGatesGradientOfOneLayer) { cross_gates_gradient_cases(*this, 1); }

OP_TEST(FirstCrossGateByHand) {
  row("typical", {{"x", {19, 33}}, {"t", {19, 33}}, {"u", {19, 33}}, {"dy", {19, 33}}, {"du", {19, 33}}});
  rounding(Rounding::stages);
  forward([](Rig& t) {
    ops::first_cross_gate_backward(t.ctx, t["x"], {{t["t"], t["u"]}, {t["dy"], t["du"]}}, t.out("d_t", t["x"].shape()),
                                   t.out("d_bias", {33}), bias_sums(t), t.out("d_x", t["x"].shape()));
  });
  expected([](const auto& t) {
    const std::vector<double> x = t["x"], dy = t["dy"];
    std::vector<double> d_t(x.size()), d_x = dy;
    for (size_t i = 0; i < x.size(); ++i) {
      d_t[i] = dy[i] * x[i];
      d_x[i] += dy[i] * t["t"][i] + t["du"][i] * t["u"][i];
    }
    t.expect("d_t", d_t);
    t.expect("d_bias", sums_of_columns(d_t, 33));
    t.expect("d_x", d_x);
  });
}

}  // namespace
}  // namespace hctr::test
