// The wgrad operator, alone and as one of the deferred launches of a backward pass.
#include "ops/gemm/weight_gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "core/device/lockstep.h"
#include "ops/gemm/linear.h"
#include "support/devices.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

std::vector<Input> weight_inputs(int64_t batch, int64_t in, int64_t out) {
  return {{"x", {batch, in}}, {"d_y", {batch, out}}};
}

/// The wgrad is deferred to the end of the backward pass, so a GPU computes it in the shared kernel where possible. The
/// shapes cover the kernel's tiles of 128 x 128 (in TF32 256 x 128 or 128 x 256) and its steps of 64 samples (32 in f32
/// and TF32). A block has at least four steps in f32, and 16 in TF32. Some results have rows that are no multiple of 16
/// bytes, because they are dense, and only d_y is padded.
OP_TEST(WeightGradient) {
  rounding(Rounding::sum);
  also_in_tf32();
  row("one tile", weight_inputs(64, 256, 128));
  row("one tile of columns as rows", weight_inputs(64, 128, 256));
  row("one part of a tile", weight_inputs(64, 128, 64));
  row("less than a tile", weight_inputs(65, 248, 120));
  row("more than a tile", weight_inputs(63, 264, 126));
  row("more than a tile of columns as rows", weight_inputs(129, 120, 258));
  row("parts of tiles", weight_inputs(70, 136, 200));
  row("several steps and rounds of the ring", weight_inputs(600, 72, 72));
  row("dense values", weight_inputs(130, 13, 96));
  row("more columns of dense values", weight_inputs(130, 13, 512));
  row("few columns", weight_inputs(130, 512, 13));
  row("tiles of columns as rows", weight_inputs(70, 300, 700));
  row("single elements", weight_inputs(33, 21, 9));
  row("one sample", weight_inputs(1, 24, 16));
  row("one output", weight_inputs(50, 40, 1));
  row("odd rows of the result", weight_inputs(70, 24, 9));
  row("two parts", weight_inputs(544, 136, 132));
  row("parts of parts", weight_inputs(1030, 40, 260));
  row("four parts", weight_inputs(2048, 24, 16));
  row("parts of several tiles", weight_inputs(1984, 300, 136));
  row("columns as rows of tiles", weight_inputs(300, 24, 300));
  row("odd columns as rows of tiles", weight_inputs(70, 21, 305));
  row("odd rows of the result, and columns as rows of tiles", weight_inputs(300, 120, 513));
  row("parts of tiles and whole ones", weight_inputs(1600, 500, 300));
  row("columns in fours as rows of tiles", weight_inputs(70, 21, 308));
  row("parts that are no whole tiles", weight_inputs(1100, 250, 136));
  row("the same of columns as rows", weight_inputs(1100, 140, 300));
  forward([](Rig& t) {
    Lockstep last(t.ctx);
    Context ctx = t.ctx.with_last_launches(&last);
    ops::weight_gradient(ctx, t["x"], t["d_y"], t.out("d_w", {t["x"].dim(1), t["d_y"].dim(1)}, Type::wide));
    last.run();
  });
  expected([](const auto& t) {
    const std::vector<double> x = t["x"], d_y = t["d_y"];
    const size_t batch = t.size("x", 0), in = t.size("x", 1), out = t.size("d_y", 1);
    std::vector<double> d_w(in * out);
    for (size_t b = 0; b < batch; ++b)
      for (size_t i = 0; i < in; ++i)
        for (size_t o = 0; o < out; ++o) d_w[i * out + o] += x[b * in + i] * d_y[b * out + o];
    t.expect("d_w", d_w);
  });
}

struct TogetherCase {
  DType dtype;
  bool tf32 = false;
};
void PrintTo(const TogetherCase& c, std::ostream* out) { *out << (c.tf32 ? "tf32" : name_of(c.dtype)); }
class WeightGradientsTogether : public testing::TestWithParam<TogetherCase> {};

/// More GEMMs than one launch processes, from several batches. The results are compared with the library, and bit by
/// bit with a second run. In two-byte types they also equal separate launches bit by bit; in f32 and TF32 the order of
/// sums differs. TF32 inputs are representable in TF32. In two-byte types one launch processes 10 GEMMs. A single GEMM
/// has tiles of 128 x 128. On 132 multiprocessors the first launch has tiles of 256 x 128 or 128 x 256, one per block;
/// the second launch has tiles of 128 x 128, three per block; the third launch has the larger tiles, two per block.
TEST_P(WeightGradientsTogether, AreWhatEachIsAlone) {
  HCTR_SKIP_WITHOUT_GPU();
  struct Size {
    int64_t batch, in, out;
  };
  std::vector<Size> sizes = {{512, 13, 512},   {512, 512, 256}, {512, 256, 128}, {512, 479, 1024}, {512, 1024, 1024},
                             {512, 1024, 512}, {1, 200, 72},    {70, 21, 305},   {300, 300, 700},  {129, 264, 126}};
  for (const int64_t tiles : {30, 44})
    for (int64_t i = 0; i < 10; ++i) {
      const int64_t few = 8 + 8 * i, many = 128 * tiles - 2 * i;
      sizes.push_back({100 + i, i % 2 ? few : many, i % 2 ? many : few});
    }
  sizes.insert(sizes.end(), {{70, 136, 9}, {130, 120, 513}});
  // tiles that do not divide evenly among blocks
  for (size_t i = 0; i < 6; ++i) sizes.push_back({2048, sizes[i].in, sizes[i].out});
  for (int64_t i = 0; i < 14; ++i) sizes.push_back({2048 - i, 400 + i, 400 - 8 * i});
  std::vector<Input> inputs;
  for (size_t i = 0; i < sizes.size(); ++i) {
    inputs.push_back({cat("x", i), {sizes[i].batch, sizes[i].in}});
    inputs.push_back({cat("d_y", i), {sizes[i].batch, sizes[i].out}});
  }
  const auto [dtype, tf32] = GetParam();
  Rig t({kGpu, dtype, tf32 ? DType::f16 : dtype, {{"rows of 16 bytes", 8}}, 1, inputs, {}, tf32});
  Lockstep last(t.ctx), again(t.ctx);
  Context ctx = t.ctx.with_last_launches(&last), ctx_again = t.ctx.with_last_launches(&again);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Tensor x = t[cat("x", i)], d_y = t[cat("d_y", i)];
    const auto out = [&](const char* name) { return t.out(cat(name, i), {sizes[i].in, sizes[i].out}, Type::wide); };
    ops::matmul(t.ctx, x, ops::Transpose::yes, d_y, ops::Transpose::no, out("alone"));
    ops::weight_gradient(ctx, x, d_y, out("together"));
    ops::weight_gradient(ctx_again, x, d_y, out("together again"));
    Lockstep only(t.ctx);
    Context own = t.ctx.with_last_launches(&only);
    ops::weight_gradient(own, x, d_y, out("in its own launch"));
    only.run();
  }
  last.run();
  again.run();
  EXPECT_EQ(t.fetch(), std::vector<std::string>());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::vector<double> expected = t.values(cat("alone", i));
    for (const char* name : {"together", "in its own launch"}) {
      const std::vector<double> found = t.values(cat(name, i));
      const double most = 1e-5 * std::sqrt(static_cast<double>(sizes[i].batch)) + 1e-6;
      size_t wrong = 0, first = 0;
      for (size_t e = 0; e < found.size(); ++e)
        if (!(std::abs(found[e] - expected[e]) <= most) && wrong++ == 0) first = e;
      EXPECT_EQ(wrong, 0u) << name << ", product " << i << ", first at " << first / static_cast<size_t>(sizes[i].out)
                           << ", " << first % static_cast<size_t>(sizes[i].out) << ": " << found[first] << ", expected "
                           << expected[first];
    }
    const auto together = t.bytes(cat("together", i));
    EXPECT_TRUE(together == t.bytes(cat("together again", i))) << "product " << i;
    if (dtype != DType::f32) {
      EXPECT_TRUE(together == t.bytes(cat("in its own launch", i))) << "product " << i;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, WeightGradientsTogether,
                         testing::Values(TogetherCase{DType::f16}, TogetherCase{DType::bf16}, TogetherCase{DType::f32},
                                         TogetherCase{DType::f32, true}));

TEST(GroupsOfEqual, HaveTheirOrderAndNoMoreThanWereAllowed) {
  using Groups = std::vector<std::vector<size_t>>;
  EXPECT_EQ(ops::hopper::groups_of_equal({}, 2), Groups());
  EXPECT_EQ(ops::hopper::groups_of_equal(std::vector{16, 1, 16, 16, 1, 16}, 3), (Groups{{1, 4}, {0, 2, 3}, {5}}));
  EXPECT_EQ(ops::hopper::groups_of_equal(std::vector{4, 4}, 2), (Groups{{0, 1}}));
}

TEST(WeightGradientRun, SmallBatchesAndFewTilesLeaveMultiprocessorsIdle) {
  EXPECT_TRUE(ops::leaves_multiprocessors_idle(512, 1024, 1024, 132));
  EXPECT_TRUE(ops::leaves_multiprocessors_idle(2048, 13, 512, 132));
  EXPECT_FALSE(ops::leaves_multiprocessors_idle(2049, 13, 512, 132)) << "rows can be divided";
  EXPECT_FALSE(ops::leaves_multiprocessors_idle(512, 1024, 1024, 64)) << "64 tiles";
  EXPECT_FALSE(ops::leaves_multiprocessors_idle(512, 1024, 1, 132)) << "sums of columns";
}

TEST(WeightGradientRun, IsTheSameInAllTypesButForSplitOperands) {
  HCTR_SKIP_WITHOUT_GPU();
  using Run = ops::WeightGradientRun;
  const auto run_of = [](Context& ctx, DType dtype) {
    Rig t({kGpu, dtype, dtype, {{"rows of 16 bytes", 8}}, 1, weight_inputs(512, 64, 64), {}});
    Lockstep last(ctx);
    Context own = ctx.with_last_launches(&last);
    Run run{};
    ops::choose_weight_gradient_run(own, t["x"], t["d_y"], t.out("d_w", {64, 64}, Type::wide), run);
    return run;
  };
  const auto run_with = [&](RuntimeOptions options, DType dtype) {
    Runtime runtime(kGpu, options);
    Context ctx(runtime, runtime.compute_stream());
    return run_of(ctx, dtype);
  };
  EXPECT_EQ(run_with({.threads = 1, .tf32 = true}, DType::f32), run_with({.threads = 1}, DType::f16));
  EXPECT_EQ(run_with({.threads = 1}, DType::f32), run_with({.threads = 1}, DType::f16));
  EXPECT_EQ(run_with({.threads = 1, .tf32x3 = true}, DType::f32), Run::in_order);
}

TEST(WeightGradientRun, IsInOrderOnTheCpu) {
  Rig t({kCpu, DType::f32, DType::f32, {{"dense"}}, 1, weight_inputs(8, 16, 16), {}});
  auto run = ops::WeightGradientRun::apart;
  ops::choose_weight_gradient_run(t.ctx, t["x"], t["d_y"], t.out("d_w", {16, 16}), run);
  EXPECT_EQ(run, ops::WeightGradientRun::in_order);
}

}  // namespace
}  // namespace hctr::test
