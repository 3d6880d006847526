// A fully connected layer with ReLU and dropout as one operator, compared with separate operators.
#include "ops/gemm/linear_dropout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/random.h"
#include "core/device/copy_bytes.h"
#include "ops/common/dropout.h"
#include "ops/gemm/gradient_through_relu.h"
#include "ops/gemm/linear.h"
#include "ops/gemm/transposed_weights.h"
#include "support/devices.h"
#include "support/near_values.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

constexpr float kLayerRate = 0.4f;
constexpr uint64_t kLayerStream = 5;

std::vector<Input> layer_inputs(int64_t batch, int64_t in, int64_t out) {
  return {{"x", {batch, in}}, {"w", {in, out}}, {"bias", {out}}};
}

OP_TEST(LinearReluDropout) {
  rounding(Rounding::stages);
  row("one tile", layer_inputs(64, 64, 64));
  row("parts of tiles", layer_inputs(70, 200, 136));
  row("single elements", layer_inputs(33, 5, 21));
  row("one row", layer_inputs(1, 16, 24));
  row("one output", layer_inputs(200, 136, 1));
  state({.step = 11, .first_sample = 40});
  forward([](Rig& t) {
    ops::linear_relu_dropout(t.ctx, t["x"], t["w"], t["bias"], kLayerRate, kLayerStream,
                             t.out("y", {t["x"].dim(0), t["w"].dim(1)}));
  });
  expected([](const auto& t) {
    const std::vector<double> x = t["x"], w = t["w"], bias = t["bias"];
    const size_t batch = t.size("x", 0), in = t.size("x", 1), out = t.size("w", 1);
    std::vector<double> y(batch * out);
    for (size_t b = 0; b < batch; ++b)
      for (size_t o = 0; o < out; ++o) {
        double sum = bias[o];
        for (size_t i = 0; i < in; ++i) sum += x[b * in + i] * w[i * out + o];
        const uint64_t block = (static_cast<uint64_t>(t.state().first_sample) + b) * ((out + 31) / 32) + o / 32;
        const Random4 draw =
            philox<7>(random_key(7, kLayerStream), static_cast<uint64_t>(t.state().step), block * 4 + o % 8 / 2);
        const uint32_t bits = draw.v[o % 32 / 8];
        const bool keeps = (o % 2 ? bits >> 16 : bits & 0xffff) >= std::lround(kLayerRate * 65536);
        y[b * out + o] = keeps ? std::max(0.0, sum) * double{ops::dropout_scale(kLayerRate)} : 0;
      }
    t.expect("y", y);
  });
}

struct LayerCase {
  const char* name;
  int64_t batch, in, out;
};
void PrintTo(const LayerCase& c, std::ostream* out) { *out << c.name; }

class LargeLinearReluDropout : public testing::TestWithParam<std::tuple<LayerCase, DType>> {};

/// Tests larger tiles, which are selected only with as many multiprocessors as a real GPU has.
TEST_P(LargeLinearReluDropout, IsWhatTheOperatorsAloneCompute) {
  HCTR_SKIP_WITHOUT_GPU();
  const LayerCase c = std::get<0>(GetParam());
  const DType dtype = std::get<1>(GetParam());
  Rig t({kGpu, dtype, dtype, {{"rows of 16 bytes", 8}}, 1, layer_inputs(c.batch, c.in, c.out), {.step = 3}});
  const Tensor y = t.out("y", {c.batch, c.out}), other = t.out("other", {c.batch, c.out});
  ops::linear_relu_dropout(t.ctx, t["x"], t["w"], t["bias"], kLayerRate, kLayerStream, y);
  ops::linear(t.ctx, t["x"], t["w"], t["bias"], other, true);
  ops::dropout(t.ctx, kLayerRate, kLayerStream, other, other);
  EXPECT_EQ(t.fetch(), std::vector<std::string>());
  expect_near(t, "y", "other", c.out);  // this operator rounds each element once; the separate operators round twice
  const std::vector<double> other_values = t.values("other");
  EXPECT_GT(std::count(other_values.begin(), other_values.end(), 0), std::ssize(other_values) / 3);
}

// Tile selection depends on the number of multiprocessors. With 132 multiprocessors, these shapes get the tiles in
// their names.
INSTANTIATE_TEST_SUITE_P(All, LargeLinearReluDropout,
                         testing::Combine(testing::Values(LayerCase{"128 x 256", 16900, 40, 512},
                                                          LayerCase{"128 x 256, deep, part of a tile", 8600, 600, 512},
                                                          LayerCase{"128 x 208", 16385, 400, 400},
                                                          LayerCase{"128 x 208, part of a tile", 16390, 136, 392},
                                                          LayerCase{"128 x 128", 2048, 136, 1024},
                                                          LayerCase{"128 x 64", 2048, 400, 400},
                                                          LayerCase{"64 x 64", 500, 1000, 1024}),
                                          testing::Values(DType::f16, DType::bf16)));

class HeldLinear : public testing::TestWithParam<std::tuple<Device, LayerCase, DType>> {};

/// A layer that overlaps a lookup gives equal bits on any number of multiprocessors, and approximately the library's
/// result.
TEST_P(HeldLinear, DoesNotDependOnTheNumberOfMultiprocessors) {
  const auto [device, c, dtype] = GetParam();
  Rig t({device, dtype, dtype, {{"rows of 16 bytes", 8}}, 1, layer_inputs(c.batch, c.in, c.out), {}});
  const std::vector<std::string> names = {"one", "few", "share", "most", "all"};
  for (size_t i = 0; i < names.size(); ++i) {
    Context held = t.ctx.with_multiprocessors(std::array{1, 3, 33, 1000, 0}[i]);
    ops::linear(held, t["x"], t["w"], t["bias"], t.out(names[i], {c.batch, c.out}), true);
  }
  EXPECT_EQ(t.fetch(), std::vector<std::string>());
  const std::vector<double> one = t.values("one");
  for (const char* other : {"few", "share", "most"}) EXPECT_EQ(one, t.values(other)) << other;
  expect_near(t, "one", "all", c.out);  // the two sums are added in different orders, so rounded values may be adjacent
  const auto positive = std::count_if(one.begin(), one.end(), [](double y) { return y > 0; });
  EXPECT_GT(positive, std::ssize(one) / 5);
  EXPECT_LT(positive, std::ssize(one));
}

INSTANTIATE_TEST_SUITE_P(
    All, HeldLinear,
    testing::Combine(testing::ValuesIn(devices()),
                     testing::Values(LayerCase{"DLRM's first", 1000, 13, 512}, LayerCase{"its second", 600, 512, 256},
                                     LayerCase{"its third", 2048, 256, 128}, LayerCase{"parts of tiles", 333, 70, 72}),
                     testing::Values(DType::f16, DType::bf16, DType::f32)));

/// TF32 has 10 fraction bits, and the matrix instruction truncates the others, so the magnitude of operands shrinks by
/// a relative error of at most 2^-10.
TEST(FusedProductsInTf32, AreNearTheReference) {
  HCTR_SKIP_WITHOUT_GPU();
  Runtime gpu(kGpu, {.threads = 1, .seed = 7, .tf32 = true}), cpu(kCpu, {.threads = 2, .seed = 7});
  const StepState state{.step = 3, .samples = 0};
  Buffer on_gpu(kGpu, sizeof state);
  copy_bytes(gpu.compute_stream(), on_gpu.data(), &state, sizeof state);
  for (const auto& [batch, in, out] : {std::array<int64_t, 3>{17000, 136, 40},
                                       {9000, 400, 400},
                                       {2048, 250, 264},
                                       {1030, 64, 72},
                                       {300, 36, 1000},
                                       {512, 479, 1024},
                                       {333, 70, 77},
                                       {70, 13, 512}}) {
    std::vector<std::vector<float>> results[2];
    for (Runtime* runtime : {&cpu, &gpu}) {
      Context ctx(*runtime, runtime->compute_stream(),
                  runtime == &cpu ? &state : reinterpret_cast<const StepState*>(on_gpu.data()));
      std::vector<Buffer> memory;
      const auto make = [&](Shape shape, uint64_t seed) {
        const TensorSpec spec =
            shape.rank() == 2 ? TensorSpec(DType::f32, shape, (shape[1] + 3) / 4 * 4) : TensorSpec(DType::f32, shape);
        std::vector<float> values(spec.bytes() / sizeof(float));
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<float>(mix64(seed * 1'000'000'007 + i) >> 40) / static_cast<float>(1 << 23) - 1;
        memory.emplace_back(runtime->device(), spec.bytes());
        copy_bytes(ctx.stream(), memory.back().data(), values.data(), spec.bytes());
        ctx.stream().synchronize();
        return Tensor(memory.back().data(), spec, runtime->device());
      };
      const Tensor x = make({batch, in}, 1), w = make({in, out}, 2), bias = make({out}, 3), y = make({batch, out}, 4);
      ops::linear_relu_dropout(ctx, x, w, bias, kLayerRate, kLayerStream, y);
      const Tensor plain = make({batch, out}, 5);
      ops::linear(ctx, x, w, bias, plain, true);
      const Tensor held = make({batch, out}, 10);
      Context beside_lookup = ctx.with_multiprocessors(33);
      ops::linear(beside_lookup, x, w, bias, held, true);
      const TensorSpec transposed = ops::transposed_weights_spec(w.spec());
      memory.emplace_back(runtime->device(), transposed.bytes());
      const Tensor copy(memory.back().data(), transposed, runtime->device());
      ops::transpose_weights(ctx, {{w, copy}});
      const Tensor of_copy = make({batch, out}, 11), dropped_of_copy = make({batch, out}, 12);
      ops::linear(ctx, x, w, bias, of_copy, true, copy);
      ops::linear_relu_dropout(ctx, x, w, bias, kLayerRate, kLayerStream, dropped_of_copy, copy);
      const Tensor d_y = make({batch, out}, 6), d_x = make({batch, in}, 7), d_bias = make({in}, 8);
      const Tensor scratch = make(ops::gradient_through_relu_scratch(d_x.spec()).shape, 9);
      ops::gradient_through_relu(ctx, d_y, w, 2, x, d_x, d_bias, scratch);
      // The gradient of an input without ReLU. Its rows are padded with zeros, which must stay zero.
      const Tensor d_in_all = make({batch, d_x.row_stride()}, 13);
      TensorSpec of_d_in = d_x.spec();
      of_d_in.zero_columns = of_d_in.row_stride - in;
      const Tensor d_in(d_in_all.bytes(), of_d_in, d_in_all.device());
      if (of_d_in.zero_columns > 0)
        for (int64_t i = 0; i < batch; ++i)
          zero_bytes(ctx.stream(), d_in_all.row_range(i, i + 1).columns(in, d_x.row_stride()).bytes(),
                     static_cast<size_t>(of_d_in.zero_columns) * sizeof(float));
      ops::matmul(ctx, d_y, ops::Transpose::no, w, ops::Transpose::yes, d_in);
      for (const Tensor& t : {y, plain, held, of_copy, dropped_of_copy, d_x, d_bias, d_in_all})
        results[runtime == &gpu].push_back(to_host<float>(ctx.stream(), t));
    }
    const auto k = static_cast<double>(in);
    const auto outputs = static_cast<double>(out), all = static_cast<double>(out * batch);
    const std::array<double, 8> depth = {k, k, k, k, k, outputs, all, outputs};
    for (size_t r = 0; r < results[0].size(); ++r) {
      double off = 0;
      for (size_t i = 0; i < results[0][r].size(); ++i)
        off = std::max(off, static_cast<double>(std::abs(results[0][r][i] - results[1][r][i])));
      EXPECT_LT(off, 2 * 2 * std::exp2(-10) * 4 * std::sqrt(depth[r])) << batch << " " << in << " " << out << ", " << r;
      EXPECT_GT(off, 0) << "f32 throughout? " << batch << " " << in << " " << out << ", " << r;
    }
  }
}

}  // namespace
}  // namespace hctr::test
