// Products of f32 by multiply-adds in kernels for Hopper, whatever the rule that takes them says of the shape.
#include "ops/f32_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "device/copy.h"
#include "ops/bias_gradient.h"
#include "ops/dropout.h"
#include "ops/gradient_through_relu.h"
#include "support/devices.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

using ops::Transpose;

struct F32Case {
  const char* name;
  int64_t m, n, k;
};
void PrintTo(const F32Case& c, std::ostream* out) { *out << c.name; }

/// Kernels beside a look-up are for the same GPUs.
bool has_hopper() { return ops::shares_beside_lookup(kGpu, DType::bf16, false, 1).has_value(); }

/// a of [m, k] or, transposed, [k, m]; b likewise.
std::vector<Input> f32_inputs(const F32Case& c, Transpose of_a, Transpose of_b) {
  const auto shape = [](int64_t rows, int64_t columns, Transpose how) {
    return how == Transpose::no ? Shape{rows, columns} : Shape{columns, rows};
  };
  return {{"a", shape(c.m, c.k, of_a)}, {"b", shape(c.k, c.n, of_b)}, {"bias", {c.n}}, {"y", {c.m, c.n}}};
}

/// The sums in double of some elements: all of a small result, of a large one every few, and its last ones.
void expect_sums(const F32Case& c, Transpose of_a, Transpose of_b, Rig& t, const std::vector<double>& found) {
  const std::vector<double> a = t.values("a"), b = t.values("b");
  const auto [m, n, k] = std::array{static_cast<size_t>(c.m), static_cast<size_t>(c.n), static_cast<size_t>(c.k)};
  const size_t all = m * n, step = std::max<size_t>(1, all * k / 40'000'000);
  size_t wrong = 0, first = 0;
  double expected = 0;
  for (size_t e = 0; e < all; e += e + 300 < all ? step : 1) {
    const size_t i = e / n, j = e % n;
    double sum = 0, size = 0;
    for (size_t l = 0; l < k; ++l) {
      const double term =
          (of_a == Transpose::no ? a[i * k + l] : a[l * m + i]) * (of_b == Transpose::no ? b[l * n + j] : b[j * k + l]);
      sum += term, size += std::abs(term);
    }
    if (!(std::abs(found[e] - sum) <= 2e-6 * size + 1e-7) && wrong++ == 0) first = e, expected = sum;
  }
  EXPECT_EQ(wrong, 0u) << "first at " << first / n << ", " << first % n << ": " << found[first] << ", expected "
                       << expected;
}

class F32ProductTest : public testing::TestWithParam<F32Case> {
 protected:
  Rig rig(Transpose of_a, Transpose of_b) const {
    return Rig({kGpu,
                DType::f32,
                DType::f32,
                {{"rows of 16 bytes", 8}},
                1,
                f32_inputs(GetParam(), of_a, of_b),
                {.step = 3, .first_sample = 40}});
  }
  Shape result() const { return {GetParam().m, GetParam().n}; }
};

/// The three forms of a layer's products, twice: sums of the same numbers, and the same bits.
TEST_P(F32ProductTest, IsTheSumAndTheSameAgain) {
  HCTR_SKIP_WITHOUT_GPU();
  if (!has_hopper()) GTEST_SKIP() << "no GPU of compute capability 9.0";
  if constexpr (kCudaBuild)
    for (const auto& [of_a, of_b] : {std::pair(Transpose::no, Transpose::no), std::pair(Transpose::no, Transpose::yes),
                                     std::pair(Transpose::yes, Transpose::no)}) {
      SCOPED_TRACE(cat("transposed ", of_a == Transpose::yes, " ", of_b == Transpose::yes));
      Rig t = rig(of_a, of_b);
      const Tensor c = t.out("c", result()), again = t.out("again", result());
      for (const Tensor& to : {c, again}) ops::hopper::f32_matmul(t.ctx, t["a"], of_a, t["b"], of_b, to);
      EXPECT_EQ(t.fetch(), std::vector<std::string>());
      expect_sums(GetParam(), of_a, of_b, t, t.values("c"));
      EXPECT_EQ(t.values("c"), t.values("again"));
    }
}

/// With its end in the kernel, a product is what the operators after it make of the product alone.
TEST_P(F32ProductTest, EndsAsTheOperatorsAloneWould) {
  HCTR_SKIP_WITHOUT_GPU();
  if (!has_hopper()) GTEST_SKIP() << "no GPU of compute capability 9.0";
  if constexpr (kCudaBuild) {
    constexpr float kDropped = 0.4f;
    constexpr uint64_t kDraws = 5;
    Rig t = rig(Transpose::no, Transpose::no);
    const Tensor plain = t.out("plain", result()), biased = t.out("biased", result()), relu = t.out("relu", result()),
                 dropped = t.out("dropped", result()), other = t.out("other", result());
    ops::hopper::f32_matmul(t.ctx, t["a"], Transpose::no, t["b"], Transpose::no, plain);
    ops::hopper::f32_linear(t.ctx, t["a"], t["b"], t["bias"], false, biased);
    ops::hopper::f32_linear(t.ctx, t["a"], t["b"], t["bias"], true, relu);
    ops::hopper::f32_linear_relu_dropout(t.ctx, t["a"], t["b"], t["bias"], kDropped, kDraws, dropped);
    ops::dropout(t.ctx, kDropped, kDraws, relu, other);
    EXPECT_EQ(t.fetch(), std::vector<std::string>());
    std::vector<double> sums = t.values("plain");
    const std::vector<double> bias = t.values("bias");
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] = static_cast<float>(sums[i]) + static_cast<float>(bias[i % bias.size()]);
    EXPECT_EQ(t.values("biased"), sums);
    for (double& x : sums) x = std::max(x, 0.0);
    EXPECT_EQ(t.values("relu"), sums);
    EXPECT_EQ(t.values("dropped"), t.values("other"));
  }
}

TEST_P(F32ProductTest, PassesGradientsThroughReluAndSumsThem) {
  HCTR_SKIP_WITHOUT_GPU();
  if (!has_hopper()) GTEST_SKIP() << "no GPU of compute capability 9.0";
  if constexpr (kCudaBuild) {
    const F32Case c = GetParam();
    Rig t = rig(Transpose::no, Transpose::yes);
    const Tensor d_z = t.out("d_z", result()), other = t.out("other", result()), d_bias = t.out("d_bias", {c.n});
    // The sums have rows one after the other.
    const Tensor sums = t.scratch("sums", ops::gradient_through_relu_scratch(d_z.spec()));
    const int64_t rows_each =
        ops::hopper::f32_gradient_through_relu(t.ctx, t["a"], t["b"], 1.25f, t["y"], d_z, sums.data<float>());
    const size_t parts = static_cast<size_t>((c.m + rows_each - 1) / rows_each);
    std::vector<float> of_parts(parts * static_cast<size_t>(c.n));
    copy_bytes(t.ctx.stream(), reinterpret_cast<std::byte*>(of_parts.data()), sums.bytes(),
               of_parts.size() * sizeof(float));
    t.ctx.stream().synchronize();
    ops::hopper::f32_matmul(t.ctx, t["a"], Transpose::no, t["b"], Transpose::yes, other);
    ops::relu_bias_gradient(t.ctx, 1.25f, t["y"], other, other, d_bias,
                            t.scratch("scratch", ops::gradient_through_relu_scratch(d_z.spec())));
    EXPECT_EQ(t.fetch(), std::vector<std::string>());
    EXPECT_EQ(t.values("d_z"), t.values("other"));
    const std::vector<double> d = t.values("d_z"), bias = t.values("d_bias");
    for (size_t j = 0; j < bias.size(); ++j) {
      double sum = 0, size = 0;
      for (size_t i = j; i < of_parts.size(); i += bias.size()) sum += of_parts[i];
      for (size_t i = j; i < d.size(); i += bias.size()) size += std::abs(d[i]);
      ASSERT_NEAR(sum, bias[j], 2e-6 * size + 1e-6) << "column " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, F32ProductTest,
                         testing::Values(F32Case{"one tile, one step", 128, 128, 32},
                                         F32Case{"parts of a tile", 70, 136, 200}, F32Case{"odd sizes", 133, 429, 61},
                                         F32Case{"one row", 1, 24, 16}, F32Case{"one column", 200, 1, 136},
                                         F32Case{"one of the summed", 130, 130, 1},
                                         F32Case{"tiles in pieces", 512, 1024, 1024},
                                         F32Case{"a tile in many pieces", 100, 100, 8200},
                                         F32Case{"tiles in rounds and pieces", 2300, 1900, 72},
                                         F32Case{"as many tiles as blocks", 1408, 1536, 40}));

TEST(F32ProductRule, TakesWhatHasEnoughWorkAndColumns) {
  using ops::F32Use;
  constexpr int64_t kProcessors = 132;
  EXPECT_TRUE(ops::f32_product_gains(F32Use::plain, 2048, 1024, 1024, kProcessors));
  EXPECT_FALSE(ops::f32_product_gains(F32Use::plain, 512, 1024, 1024, kProcessors)) << "little work";
  EXPECT_FALSE(ops::f32_product_gains(F32Use::plain, 65536, 256, 512, kProcessors)) << "few columns";
  EXPECT_TRUE(ops::f32_product_gains(F32Use::ended, 65536, 256, 512, kProcessors)) << "and passes that are saved";
  EXPECT_FALSE(ops::f32_product_gains(F32Use::ended, 65536, 1, 1024, kProcessors)) << "one column";
  EXPECT_TRUE(ops::f32_product_gains(F32Use::weight_gradient, 400, 400, 16384, kProcessors));
  EXPECT_FALSE(ops::f32_product_gains(F32Use::weight_gradient, 512, 256, 65536, kProcessors)) << "few tiles";
  EXPECT_FALSE(ops::f32_product_gains(F32Use::weight_gradient, 13, 512, 65536, kProcessors)) << "few rows";
}

TEST(F32ProductRule, TakesLongTilesWhereTheyMultiplyFewerZeros) {
  EXPECT_FALSE(ops::takes_long_f32_tiles(false, 2048, 1024));
  EXPECT_FALSE(ops::takes_long_f32_tiles(false, 2048, 479));
  EXPECT_TRUE(ops::takes_long_f32_tiles(false, 2048, 429));
  EXPECT_TRUE(ops::takes_long_f32_tiles(false, 16384, 400));
  EXPECT_TRUE(ops::takes_long_f32_tiles(true, 429, 1024));
  EXPECT_FALSE(ops::takes_long_f32_tiles(true, 479, 1024));
}

TEST(DivideF32Product, GivesEveryTileAndNoBlockTooLittle) {
  for (const int64_t multiprocessors : {1, 20, 132})
    for (const int64_t tiles : {1, 7, 131, 132, 133, 264, 1000})
      for (const int64_t steps : {1, 3, 32, 2048}) {
        const ops::DividedTiles d = ops::divide_f32_product(tiles, steps, multiprocessors);
        SCOPED_TRACE(
            cat(tiles, " tiles of ", steps, " steps on ", multiprocessors, ": ", d.blocks, " blocks, ", d.rounds));
        ASSERT_GE(d.blocks, 1);
        ASSERT_LE(d.blocks, multiprocessors);
        const int64_t left = tiles - int64_t{d.rounds} * d.blocks;
        ASSERT_GE(left, 0);
        ASSERT_LT(left, 2 * int64_t{d.blocks});
        ASSERT_TRUE(d.blocks == 1 || d.rounds > 0 || tiles * steps / d.blocks >= 4);
      }
}

}  // namespace
}  // namespace hctr::test
