// GEMMs of cross layers with gates in the epilogue, compared with formulas and with separate operators.
#include "ops/dense/cross_product.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/dense/cross_gate.h"
#include "ops/gemm/linear.h"
#include "support/devices.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

using ops::Transpose;

std::vector<Input> gated_inputs(int64_t batch, int64_t in, int64_t n) {
  return {{"a", {batch, in}}, {"w", {in, n}}, {"bias", {n}}, {"x", {batch, n}}, {"skip", {batch, n}}};
}
std::vector<Input> gated_gradients(int64_t batch, int64_t in, int64_t n) {
  return {{"d_a", {batch, in}}, {"w", {n, in}}, {"addend", {batch, n}}, {"x", {batch, n}}};
}

/// Shapes around the tile of the Hopper kernel, 128 x 192, and its steps of 64 along `in`.
void gated_rows(auto& test, const auto& inputs) {
  test.rounding(Rounding::stages);
  test.row("one tile", inputs(128, 64, 192));
  test.row("parts of tiles", inputs(70, 72, 200));
  test.row("single elements", inputs(33, 5, 21));
  test.row("one row", inputs(1, 16, 24));
  test.row("no rows", inputs(0, 16, 24));
}

OP_TEST(CrossProduct) {
  gated_rows(*this, gated_inputs);
  forward([](Rig& t) {
    const Shape shape = t["x"].shape();
    ops::cross_product(t.ctx, t["a"], t["w"], t["bias"], t["x"], t["skip"], t.out("t", shape), t.out("y", shape));
  });
  expected([](const auto& t) {
    const std::vector<double> a = t["a"], w = t["w"], bias = t["bias"], x = t["x"];
    std::vector<double> sums(x.size()), y = t["skip"];
    const size_t in = t.size("w", 0), n = t.size("w", 1);
    for (size_t i = 0; i < x.size(); ++i) {
      sums[i] = bias[i % n];
      for (size_t k = 0; k < in; ++k) sums[i] += a[i / n * in + k] * w[k * n + i % n];
      y[i] += x[i] * sums[i];
    }
    t.expect("t", sums);
    t.expect("y", y);
  });
}

/// Tests only f32: in other types, the sums of rounded values would differ from the reference.
OP_TEST(CrossProductBackward) {
  gated_rows(*this, gated_gradients);
  f32_only();
  forward([](Rig& t) {
    const Shape shape = t["x"].shape();
    ops::cross_product_backward(t.ctx, t["d_a"], t["w"], t["addend"], t["x"], t.out("d_y", shape), t.out("d_t", shape),
                                t.out("d_bias", {shape[1]}, Type::wide),
                                t.scratch("sums", ops::cross_product_scratch(shape[0], shape[1])));
  });
  expected([](const auto& t) {
    const std::vector<double> d_a = t["d_a"], w = t["w"], x = t["x"];
    std::vector<double> d_y = t["addend"], d_t(x.size());
    const size_t in = t.size("w", 1), n = t.size("w", 0);
    std::vector<double> d_bias(n);
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t k = 0; k < in; ++k) d_y[i] += d_a[i / n * in + k] * w[i % n * in + k];
      d_t[i] = d_y[i] * x[i];
      d_bias[i % n] += d_t[i];
    }
    t.expect("d_y", d_y);
    t.expect("d_t", d_t);
    t.expect("d_bias", d_bias);
  });
}

struct GatedCase {
  const char* name;
  int64_t batch, in, n;
  int multiprocessors = 0;
};
void PrintTo(const GatedCase& c, std::ostream* out) { *out << c.name; }

class LargeCrossProduct : public testing::TestWithParam<std::tuple<GatedCase, DType>> {
 protected:
  static double unit() { return std::get<1>(GetParam()) == DType::bf16 ? std::exp2(-7) : std::exp2(-10); }

  /// Describes the elements that differ by more than the last digit of the rounded type: their count, and the position
  /// of the first.
  static std::string differences(const std::vector<double>& one, const std::vector<double>& other, double unit,
                                 double scale) {
    size_t wrong = 0, first = 0;
    for (size_t i = 0; i < one.size(); ++i)
      if (!(std::abs(one[i] - other[i]) <= unit * (std::abs(other[i]) + scale)) && wrong++ == 0) first = i;
    return wrong == 0 ? "" : cat(wrong, ", first at ", first, ": ", one[first], ", expected ", other[first]);
  }
};

/// Runs the operator as in training on a GPU, and compares with separate operators. The separate operators add in
/// another order, so rounded values may be adjacent. The gate must be equal bit for bit, and so must all results of a
/// second run.
TEST_P(LargeCrossProduct, IsWhatTheOperatorsAloneCompute) {
  HCTR_SKIP_WITHOUT_GPU();
  const auto [c, dtype] = GetParam();
  Rig t({kGpu, dtype, dtype, {{"rows of 16 bytes", 8}}, 1, gated_inputs(c.batch, c.in, c.n), {}});
  const Shape shape{c.batch, c.n};
  Context held = t.ctx.with_multiprocessors(c.multiprocessors);
  for (const char* run : {"", "2"})
    ops::cross_product(held, t["a"], t["w"], t["bias"], t["x"], t["skip"], t.out(cat("t", run), shape),
                       t.out(cat("y", run), shape));
  const Tensor sums = t.out("plain t", shape);
  ops::linear(t.ctx, t["a"], t["w"], t["bias"], sums);
  ops::cross_gate(t.ctx, t["x"], t.out("t", shape), t["skip"], t.out("gated", shape));
  EXPECT_EQ(t.fetch(), std::vector<std::string>());
  EXPECT_EQ(differences(t.values("t"), t.values("plain t"), unit(), 1e-2), "");
  EXPECT_EQ(t.values("y"), t.values("gated"));
  EXPECT_EQ(t.values("t"), t.values("t2"));
  EXPECT_EQ(t.values("y"), t.values("y2"));
}

TEST_P(LargeCrossProduct, HasTheGradientsThatTheOperatorsAloneCompute) {
  HCTR_SKIP_WITHOUT_GPU();
  const auto [c, dtype] = GetParam();
  Rig t({kGpu, dtype, dtype, {{"rows of 16 bytes", 8}}, 1, gated_gradients(c.batch, c.in, c.n), {}});
  const Shape shape{c.batch, c.n};
  const Tensor scratch = t.scratch("sums", ops::cross_product_scratch(c.batch, c.n));
  Context held = t.ctx.with_multiprocessors(c.multiprocessors);
  for (const char* run : {"", "2"})
    ops::cross_product_backward(held, t["d_a"], t["w"], t["addend"], t["x"], t.out(cat("d_y", run), shape),
                                t.out(cat("d_t", run), shape), t.out(cat("d_bias", run), {c.n}, Type::wide), scratch);
  ops::matmul_plus(t.ctx, t["d_a"], Transpose::no, t["w"], Transpose::yes, t["addend"], t.out("plain d_y", shape));
  ops::cross_gate_backward(t.ctx, t["x"], t.out("d_y", shape), t.out("gated", shape),
                           t.out("sums of gated", {c.n}, Type::wide), scratch);
  EXPECT_EQ(t.fetch(), std::vector<std::string>());
  EXPECT_EQ(differences(t.values("d_y"), t.values("plain d_y"), unit(), 1e-2), "");
  EXPECT_EQ(t.values("d_t"), t.values("gated"));
  EXPECT_EQ(differences(t.values("d_bias"), t.values("sums of gated"), 1e-5, static_cast<double>(c.batch)), "");
  for (const char* name : {"d_y", "d_t", "d_bias"}) EXPECT_EQ(t.values(name), t.values(cat(name, "2"))) << name;
}

INSTANTIATE_TEST_SUITE_P(All, LargeCrossProduct,
                         testing::Combine(testing::Values(GatedCase{"more tiles than blocks", 400, 512, 600, 3},
                                                          GatedCase{"parts of tiles", 1030, 40, 1000},
                                                          GatedCase{"fewer rows than a group", 20, 136, 200},
                                                          GatedCase{"rows of one group", 2113, 72, 392},
                                                          GatedCase{"one step", 300, 8, 8},
                                                          GatedCase{"deep", 260, 1024, 576}),
                                          testing::Values(DType::f16, DType::bf16)));

}  // namespace
}  // namespace hctr::test
