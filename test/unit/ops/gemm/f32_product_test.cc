// Hopper kernels for f32 GEMMs, which use multiply-adds. Tests them with all shapes, including shapes for which
// huge_ctr selects another kernel.
#include "ops/gemm/f32_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "core/device/copy_bytes.h"
#include "core/device/gpu_traits.h"
#include "ops/common/dropout.h"
#include "ops/gemm/bias_gradient.h"
#include "ops/gemm/gradient_through_relu.h"
#include "support/devices.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

using ops::Transpose;

using ops::F32Tiles;

struct F32Case {
  const char* name;
  int64_t m, n, k;
};

const char* name_of(F32Tiles tiles) {
  constexpr const char* kNames[] = {"square", "thin", "half", "quarter"};
  return kNames[static_cast<int>(tiles)];
}

/// Each case runs with all tile sizes.
using F32Param = std::tuple<F32Case, F32Tiles>;
void PrintTo(const F32Param& p, std::ostream* out) { *out << std::get<0>(p).name << ", " << name_of(std::get<1>(p)); }

bool has_hopper() { return devices().size() > 1 && gpu_traits(kGpu)->is_hopper(); }

/// `a` is [m, k], or [k, m] if transposed; `b` is [k, n], or [n, k] if transposed.
std::vector<Input> f32_inputs(const F32Case& c, Transpose of_a, Transpose of_b) {
  const auto shape = [](int64_t rows, int64_t columns, Transpose how) {
    return how == Transpose::no ? Shape{rows, columns} : Shape{columns, rows};
  };
  return {{"a", shape(c.m, c.k, of_a)}, {"b", shape(c.k, c.n, of_b)}, {"bias", {c.n}}, {"y", {c.m, c.n}}};
}

/// Compares elements with sums in double: all elements of a small result, or a sample of a large result, including its
/// last elements.
[[maybe_unused]] void expect_sums(const F32Case& c, Transpose of_a, Transpose of_b, Rig& t,
                                  const std::vector<double>& found) {
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

class F32ProductTest : public testing::TestWithParam<F32Param> {
 protected:
  Rig rig(Transpose of_a, Transpose of_b) const {
    return Rig({kGpu,
                DType::f32,
                DType::f32,
                {{"rows of 16 bytes", 8}},
                1,
                f32_inputs(shape(), of_a, of_b),
                {.step = 3, .first_sample = 40}});
  }
  F32Case shape() const { return std::get<0>(GetParam()); }
  F32Tiles tiles() const { return std::get<1>(GetParam()); }
  Shape result() const { return {shape().m, shape().n}; }
};

/// Runs the three GEMMs of a layer twice. The results equal the reference within rounding, and both runs are equal bit
/// for bit.
TEST_P(F32ProductTest, IsTheSumAndTheSameAgain) {
  HCTR_SKIP_WITHOUT_GPU();
  if (!has_hopper()) GTEST_SKIP() << "no GPU of compute capability 9.0";
  if constexpr (kCudaBuild)
    for (const auto& [of_a, of_b] : {std::pair(Transpose::no, Transpose::no), std::pair(Transpose::no, Transpose::yes),
                                     std::pair(Transpose::yes, Transpose::no)}) {
      SCOPED_TRACE(cat("transposed ", of_a == Transpose::yes, " ", of_b == Transpose::yes));
      Rig t = rig(of_a, of_b);
      const Tensor c = t.out("c", result()), again = t.out("again", result());
      for (const Tensor& to : {c, again}) ops::hopper::f32_matmul(t.ctx, t["a"], of_a, t["b"], of_b, to, tiles());
      EXPECT_EQ(t.fetch(), std::vector<std::string>());
      expect_sums(shape(), of_a, of_b, t, t.values("c"));
      EXPECT_EQ(t.values("c"), t.values("again"));
    }
}

/// A GEMM with an epilogue equals the GEMM followed by separate operators.
TEST_P(F32ProductTest, EndsAsTheOperatorsAloneWould) {
  HCTR_SKIP_WITHOUT_GPU();
  if (!has_hopper()) GTEST_SKIP() << "no GPU of compute capability 9.0";
  if constexpr (kCudaBuild) {
    constexpr float kDropped = 0.4f;
    constexpr uint64_t kDraws = 5;
    Rig t = rig(Transpose::no, Transpose::no);
    const Tensor plain = t.out("plain", result()), biased = t.out("biased", result()), relu = t.out("relu", result()),
                 dropped = t.out("dropped", result()), other = t.out("other", result());
    ops::hopper::f32_matmul(t.ctx, t["a"], Transpose::no, t["b"], Transpose::no, plain, tiles());
    ops::hopper::f32_linear(t.ctx, t["a"], t["b"], t["bias"], false, biased, tiles());
    ops::hopper::f32_linear(t.ctx, t["a"], t["b"], t["bias"], true, relu, tiles());
    ops::hopper::f32_linear_relu_dropout(t.ctx, t["a"], t["b"], t["bias"], kDropped, kDraws, dropped, tiles());
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
    const F32Case c = shape();
    Rig t = rig(Transpose::no, Transpose::yes);
    const Tensor d_z = t.out("d_z", result()), other = t.out("other", result()), d_bias = t.out("d_bias", {c.n});
    // The partial sums have contiguous rows.
    const Tensor sums = t.scratch("sums", ops::gradient_through_relu_scratch(d_z.spec()));
    const int64_t rows_each =
        ops::hopper::f32_gradient_through_relu(t.ctx, t["a"], t["b"], 1.25f, t["y"], d_z, sums.data<float>(), tiles());
    ASSERT_EQ(rows_each, ops::f32_tile_size(tiles(), false).m);
    const size_t parts = static_cast<size_t>((c.m + rows_each - 1) / rows_each);
    std::vector<float> of_parts(parts * static_cast<size_t>(c.n));
    copy_bytes(t.ctx.stream(), reinterpret_cast<std::byte*>(of_parts.data()), sums.bytes(),
               of_parts.size() * sizeof(float));
    t.ctx.stream().synchronize();
    ops::hopper::f32_matmul(t.ctx, t["a"], Transpose::no, t["b"], Transpose::yes, other, tiles());
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

INSTANTIATE_TEST_SUITE_P(
    All, F32ProductTest,
    testing::Combine(
        testing::Values(F32Case{"one tile, one step", 128, 128, 32}, F32Case{"parts of a tile", 70, 136, 200},
                        F32Case{"odd sizes", 133, 429, 61}, F32Case{"one row", 1, 24, 16},
                        F32Case{"one column", 200, 1, 136}, F32Case{"one of the summed", 130, 130, 1},
                        F32Case{"the last box is empty", 130, 130, 96}, F32Case{"tiles in pieces", 512, 1024, 1024},
                        F32Case{"tiles in even parts", 512, 256, 512}, F32Case{"a tile in many pieces", 100, 100, 8200},
                        F32Case{"tiles in rounds and pieces", 2300, 1900, 72},
                        F32Case{"as many tiles as blocks", 1408, 1536, 40}),
        testing::ValuesIn(ops::kF32Tiles)));

constexpr int64_t kProcessors = 132;  // multiprocessors of the GPU on which the rules were measured

TEST(F32ProductRule, TakesWhatHasEnoughWorkAndColumns) {
  using ops::F32Use;
  EXPECT_TRUE(ops::f32_product_gains(F32Use::plain, 2048, 1024, 1024, kProcessors));
  EXPECT_FALSE(ops::f32_product_gains(F32Use::plain, 65536, 256, 512, kProcessors)) << "few columns";
  EXPECT_TRUE(ops::f32_product_gains(F32Use::ended, 65536, 256, 512, kProcessors)) << "and passes that are saved";
  EXPECT_FALSE(ops::f32_product_gains(F32Use::ended, 65536, 1, 1024, kProcessors)) << "one column";
  EXPECT_FALSE(ops::f32_product_gains(F32Use::plain, 2048, 512, 13, kProcessors)) << "few of the summed";
  EXPECT_TRUE(ops::f32_product_gains(F32Use::weight_gradient, 400, 400, 16384, kProcessors));
  EXPECT_FALSE(ops::f32_product_gains(F32Use::weight_gradient, 512, 256, 65536, kProcessors)) << "few tiles";
  EXPECT_FALSE(ops::f32_product_gains(F32Use::weight_gradient, 13, 512, 65536, kProcessors)) << "few rows";
}

TEST(F32ProductRule, TakesSmallProductsThatTakeLongerInTheLibrary) {
  using ops::F32Use;
  EXPECT_TRUE(ops::f32_product_gains(F32Use::plain, 512, 1024, 1024, kProcessors));
  EXPECT_TRUE(ops::f32_product_gains(F32Use::plain, 512, 1024, 479, kProcessors));
  EXPECT_TRUE(ops::f32_product_gains(F32Use::ended, 512, 1024, 479, kProcessors));
  EXPECT_TRUE(ops::f32_product_gains(F32Use::ended, 512, 512, 1024, kProcessors));
  EXPECT_TRUE(ops::f32_product_gains(F32Use::ended, 2048, 256, 512, kProcessors));
  EXPECT_FALSE(ops::f32_product_gains(F32Use::plain, 512, 512, 256, kProcessors)) << "little work";
  EXPECT_FALSE(ops::f32_product_gains(F32Use::ended, 512, 128, 256, kProcessors)) << "few columns";
}

TEST(F32ProductRule, TransposesWhereThatTakesLittleOfTheTime) {
  using ops::F32Use;
  EXPECT_TRUE(ops::f32_product_gains(F32Use::transposed, 2048, 1024, 1024, kProcessors));
  EXPECT_TRUE(ops::f32_product_gains(F32Use::transposed, 2048, 479, 1024, kProcessors));
  EXPECT_FALSE(ops::f32_product_gains(F32Use::transposed, 2048, 1024, 479, kProcessors)) << "shallow";
  EXPECT_FALSE(ops::f32_product_gains(F32Use::transposed, 512, 512, 1024, kProcessors)) << "little work";
}

/// The tile of a wgrad, whose first operand is transposed, has rows and columns exchanged.
TEST(F32ProductRule, TakesTilesThatMultiplyFewZerosAndFillTheGpu) {
  const auto tiles = [](bool transposed_a, int64_t m, int64_t n, int64_t k) {
    return name_of(ops::f32_tiles(transposed_a, m, n, k, kProcessors));
  };
  EXPECT_STREQ(tiles(false, 16384, 1024, 1024), "square");
  EXPECT_STREQ(tiles(false, 16384, 479, 1024), "square");
  EXPECT_STREQ(tiles(false, 16384, 429, 1024), "thin");
  EXPECT_STREQ(tiles(false, 16384, 400, 400), "thin");
  EXPECT_STREQ(tiles(true, 429, 1024, 16384), "thin");
  EXPECT_STREQ(tiles(true, 479, 1024, 16384), "square");
  EXPECT_STREQ(tiles(false, 2048, 512, 1024), "half") << "128 tiles";
  EXPECT_STREQ(tiles(false, 512, 1024, 479), "quarter") << "128 tiles";
  EXPECT_STREQ(tiles(false, 512, 256, 512), "quarter");
}

TEST(DivideF32Product, GivesEveryTileAndNoBlockTooLittle) {
  for (const F32Tiles tiling : ops::kF32Tiles)
    for (const int64_t multiprocessors : {1, 20, 132})
      for (const int64_t tiles : {1, 7, 131, 132, 133, 264, 1000})
        for (const int64_t steps : {1, 3, 32, 2048}) {
          const ops::DividedTiles d = ops::divide_f32_product(tiling, tiles, steps, multiprocessors);
          SCOPED_TRACE(cat(tiles, " tiles, ", name_of(tiling), ", of ", steps, " steps on ", multiprocessors, ": ",
                           d.blocks, " blocks, ", d.rounds));
          ASSERT_GE(d.blocks, 1);
          ASSERT_LE(d.blocks, multiprocessors);
          const int64_t left = tiles - int64_t{d.rounds} * d.blocks;
          ASSERT_GE(left, 0);
          ASSERT_LT(left, 2 * int64_t{d.blocks});
          const int64_t least_steps = 128 / ops::f32_tile_size(tiling, false).depth;
          ASSERT_TRUE(d.blocks == 1 || d.rounds > 0 || tiles * steps / d.blocks >= least_steps);
        }
}

TEST(DivideF32Product, DividesFewTilesIntoEqualPartsUnlessThatLeavesMuchIdle) {
  const auto blocks = [](F32Tiles tiling, int64_t tiles, int64_t steps) {
    const ops::DividedTiles d = ops::divide_f32_product(tiling, tiles, steps, kProcessors);
    return std::pair(d.blocks, d.rounds);
  };
  EXPECT_EQ(blocks(F32Tiles::half, 64, 16), std::pair(128, 0)) << "two parts each";
  EXPECT_EQ(blocks(F32Tiles::quarter, 128, 16), std::pair(128, 1)) << "whole";
  EXPECT_EQ(blocks(F32Tiles::square, 100, 64), std::pair(132, 0)) << "else 32 multiprocessors would be idle";
  EXPECT_EQ(blocks(F32Tiles::square, 150, 16).first, 132) << "more tiles than multiprocessors";
}

}  // namespace
}  // namespace hctr::test
