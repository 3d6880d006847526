#include "ops/gemm/bias_gradient.h"

#include <gtest/gtest.h>

#include "support/op_test.h"

namespace hctr::test {
namespace {

Tensor scratch_for(Rig& t, int64_t columns) { return t.scratch("sums", ops::bias_gradient_scratch(columns)); }

/// Shapes around the block sizes: 4 rows per thread, 8, 4 or 1 columns per thread, 512 segments of rows.
void shapes(auto& test, const std::vector<std::string>& names) {
  test.rounding(Rounding::sum);
  const auto row = [&](const char* title, int64_t rows, int64_t columns) {
    std::vector<Input> inputs;
    for (const std::string& name : names) inputs.push_back({name, {rows, columns}});
    test.row(title, inputs);
  };
  row("typical", 512, 64);
  row("several tiles", 300, 530);
  row("odd columns", 257, 33);
  row("one column", 5000, 1);
  row("one row", 1, 70);
  row("one element", 1, 1);
  row("no rows", 0, 5);
  row("several rows a part", 900, 600);
  row("wide", 40, 2100);
}

std::vector<double> column_sums(const std::vector<double>& values, size_t columns) {
  std::vector<double> sums(columns);
  for (size_t i = 0; i < values.size(); ++i) sums[i % columns] += values[i];
  return sums;
}

OP_TEST(BiasGradient) {
  shapes(*this, {"d_z"});
  forward([](Rig& t) {
    const int64_t columns = t["d_z"].dim(1);
    ops::bias_gradient(t.ctx, t["d_z"], t.out("d_bias", {columns}, Type::wide), scratch_for(t, columns));
  });
  expected([](const auto& t) { t.expect("d_bias", column_sums(t["d_z"], t.size("d_z", 1))); });
}

/// Multiplying by 2 is exact in every dtype, so the expected bias gradient is the sum of the rounded gradients.
OP_TEST(ReluBiasGradient) {
  shapes(*this, {"y", "d_y"});
  forward([](Rig& t) {
    const Shape shape = t["y"].shape();
    ops::relu_bias_gradient(t.ctx, 2, t["y"], t["d_y"], t.out("d_z", shape), t.out("d_bias", {shape[1]}, Type::wide),
                            scratch_for(t, shape[1]));
  });
  expected([](const auto& t) {
    const std::vector<double> y = t["y"], d_y = t["d_y"];
    std::vector<double> d_z(y.size());
    for (size_t i = 0; i < y.size(); ++i) d_z[i] = y[i] > 0 ? 2 * d_y[i] : 0;
    t.expect("d_z", d_z);
    t.expect("d_bias", column_sums(d_z, t.size("y", 1)));
  });
}

OP_TEST(ReluBiasGradientInPlace) {
  row("typical", {{"y", {70, 33}}, {"d", {70, 33}}});
  rounding(Rounding::sum);
  forward([](Rig& t) {
    ops::relu_bias_gradient(t.ctx, 1, t["y"], t.inout("d"), t.inout("d"), t.out("d_bias", {33}, Type::wide),
                            scratch_for(t, 33));
  });
}

}  // namespace
}  // namespace hctr::test
