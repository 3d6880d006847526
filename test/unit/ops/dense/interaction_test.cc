#include "ops/dense/interaction.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/base/random.h"
#include "core/device/arena.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "ops/common/fill.h"
#include "ops/common/rounding.h"
#include "ops/gemm/bias_gradient.h"
#include "ops/gemm/gradient_through_relu.h"
#include "support/devices.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

OP_TEST(Interaction) {
  row("dlrm", {{"a", {9, 32}}, {"e", {9, 26, 32}}});
  row("one slot", {{"a", {3, 8}}, {"e", {3, 1, 8}}});
  row("odd sizes", {{"a", {5, 11}}, {"e", {5, 6, 11}}});
  row("more than 31 slots", {{"a", {2, 5}}, {"e", {2, 70, 5}}});
  row("a block a sample", {{"a", {3, 12}}, {"e", {3, 45, 12}}});
  row("28 vectors", {{"a", {5, 12}}, {"e", {5, 27, 12}}});
  row("beyond shared memory", {{"a", {2, 4}}, {"e", {2, 300, 4}}});
  row("long vectors beyond shared memory", {{"a", {2, 1100}}, {"e", {2, 60, 1100}}});
  row("a whole tile of vectors, one chunk", {{"a", {5, 8}}, {"e", {5, 15, 8}}});
  row("two tiles, an odd number of chunks", {{"a", {7, 24}}, {"e", {7, 17, 24}}});
  row("three tiles", {{"a", {3, 16}}, {"e", {3, 40, 16}}});
  row("four whole tiles", {{"a", {2, 16}}, {"e", {2, 63, 16}}});
  row("long vectors", {{"a", {2, 264}}, {"e", {2, 9, 264}}});
  row("no rows", {{"a", {0, 4}}, {"e", {0, 3, 4}}});
  large("large", {{"a", {70000, 16}}, {"e", {70000, 26, 16}}});
  rounding(Rounding::sum);
  forward([](Rig& t) {
    const int64_t m = t["e"].dim(1) + 1;
    ops::interaction(t.ctx, t["a"], t["e"], t.out("y", {t["a"].dim(0), t["a"].dim(1) + m * (m - 1) / 2 + 1}));
  });
  backward([](Rig& t) { ops::interaction_backward(t.ctx, t["a"], t["e"], t.d("y"), t.d("a"), t.d("e")); });
}

TEST(InteractionOp, ByHand) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"a", {1, 2}, 2, 2}, {"e", {1, 2, 2}, 3, 3}}, {}});
  ops::interaction(t.ctx, t["a"], t["e"], t.out("y", {1, 6}));
  t.fetch();
  EXPECT_EQ(t.values("y"), (std::vector<double>{2, 2, 12, 12, 18, 0}));  // columns: v0, (0,1), (0,2), (1,2), padding
}

TEST(InteractionOp, FindsAnOverflowInTheGradientsOfTheSlotsAlone) {
  for (const Device device : devices())
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
      for (const auto& [slots, dim] : {std::pair<int64_t, int64_t>{26, 32}, {6, 11}}) {
        Runtime& runtime = runtime_of(device);
        Context ctx(runtime, runtime.compute_stream());
        const int64_t samples = 5, width = dim + slots * (slots + 1) / 2 + 1;
        Arena arena;
        const size_t a = arena.add(TensorSpec(dtype, {samples, dim})),
                     e = arena.add(TensorSpec(dtype, {samples, slots, dim})),
                     dy = arena.add(TensorSpec(dtype, {samples, width}, (width + 7) / 8 * 8)),
                     d_a = arena.add(TensorSpec(dtype, {samples, dim})),
                     d_e = arena.add(TensorSpec(dtype, {samples, slots, dim})),
                     flag = arena.add(TensorSpec(DType::f32, {1}));
        arena.build(device);
        ops::fill(ctx, 2, arena.get(a));
        ops::fill(ctx, 2, arena.get(e));
        const auto found = [&](int64_t column, float value) {
          dispatch_float(dtype, [&]<class T>() {
            std::vector<T> values(static_cast<size_t>(samples * width), T(0.5f));
            values[static_cast<size_t>((samples - 1) * width + column)] = T(value);
            from_host(ctx.stream(), arena.get(dy), values);
          });
          ops::fill(ctx, 0, arena.get(flag));
          ops::interaction_backward(ctx, arena.get(a), arena.get(e), arena.get(dy), arena.get(d_a), arena.get(d_e),
                                    {ops::kLargest<float>, arena.get(flag).data<float>()});
          return to_host<float>(ctx.stream(), arena.get(flag))[0] > 0;
        };
        const std::string row = cat(to_string(device), " ", name_of(dtype), " ", slots, " x ", dim);
        EXPECT_FALSE(found(0, 1)) << row;
        EXPECT_FALSE(found(3, std::numeric_limits<float>::infinity())) << "of the dense vector: " << row;
        EXPECT_TRUE(found(dim, std::numeric_limits<float>::infinity())) << row;
        EXPECT_TRUE(found(width - 2, std::nanf(""))) << row;
        EXPECT_FALSE(found(width - 1, std::nanf(""))) << "of the column that holds no pair: " << row;
        EXPECT_EQ(found(width - 2, 50000), dtype == DType::f16) << "twice that overflows f16 alone: " << row;
      }
}

// TF32 has 10 fraction bits, so operands have a relative error of at most 2^-11, and sums of 16 to 128 products an
// error of a few times 2^-11 of the largest possible product.
TEST(InteractionOp, Tf32IsNearTheReference) {
  HCTR_SKIP_WITHOUT_GPU();
  Runtime gpu(kGpu, {.threads = 1, .seed = 7, .tf32 = true}), cpu(kCpu, {.threads = 1, .seed = 7});
  for (const auto& [vectors, dim] : {std::pair<int64_t, int64_t>{2, 4}, {9, 12}, {27, 128}, {33, 16}, {64, 32}}) {
    const int64_t samples = 37, width = dim + vectors * (vectors - 1) / 2 + 1;
    const std::vector<TensorSpec> specs = {{DType::f32, {samples, dim}},
                                           {DType::f32, {samples, vectors - 1, dim}},
                                           {DType::f32, {samples, width}, (width + 3) / 4 * 4}};
    std::vector<std::vector<float>> results[2];
    for (Runtime* runtime : {&cpu, &gpu}) {
      Context ctx(*runtime, runtime->compute_stream());
      std::vector<Buffer> memory;
      const auto make = [&](const TensorSpec& spec, uint64_t seed) {
        std::vector<float> values(spec.bytes() / sizeof(float));
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<float>(mix64(seed + i) >> 40) / static_cast<float>(1 << 23) - 1;
        memory.emplace_back(runtime->device(), spec.bytes());
        copy_bytes(ctx.stream(), memory.back().data(), values.data(), spec.bytes());
        ctx.stream().synchronize();
        return Tensor(memory.back().data(), spec, runtime->device());
      };
      const Tensor dense = make(specs[0], 1), slots = make(specs[1], 2), dy = make(specs[2], 3);
      const Tensor y = make(specs[2], 4), d_dense = make(specs[0], 5), d_slots = make(specs[1], 6);
      ops::interaction(ctx, dense, slots, y);
      ops::interaction_backward(ctx, dense, slots, dy, d_dense, d_slots);
      for (const Tensor& t : {y, d_dense, d_slots}) results[runtime == &gpu].push_back(to_host<float>(ctx.stream(), t));
    }
    for (size_t k = 0; k < results[0].size(); ++k) {
      double most = 0, off = 0;
      for (size_t i = 0; i < results[0][k].size(); ++i) {
        most = std::max(most, static_cast<double>(std::abs(results[0][k][i])));
        off = std::max(off, static_cast<double>(std::abs(results[0][k][i] - results[1][k][i])));
      }
      EXPECT_LT(off, 4e-3 * most) << vectors << " vectors of " << dim << ", result " << k;
      EXPECT_GT(off, 0) << "f32 throughout? " << vectors << " vectors of " << dim << ", result " << k;
    }
  }
}

std::vector<Input> behind_relu_inputs(int64_t samples, int64_t slots, int64_t dim) {
  const int64_t m = slots + 1;
  return {{"a", {samples, dim}}, {"e", {samples, slots, dim}}, {"dy", {samples, dim + m * (m - 1) / 2 + 1}}};
}

/// Writes the bias gradient to d_bias, and the gradient of "a" before its ReLU to "d_a".
void interaction_backward_through_relu(Rig& t, float factor, const Tensor& d_bias) {
  const Tensor d_a = t.out("d_a", t["a"].shape()), d_e = t.out("d_e", t["e"].shape());
  const Tensor sums = t.scratch("sums", ops::gradient_through_relu_scratch(d_a.spec()));
  ops::interaction_backward(t.ctx, t["a"], t["e"], t["dy"], d_a, d_e, {}, ops::ReluEnd{factor, d_bias, sums});
}

OP_TEST(InteractionThroughRelu) {
  row("dlrm", behind_relu_inputs(9, 26, 32));
  row("odd sizes", behind_relu_inputs(5, 6, 11));
  row("beyond shared memory", behind_relu_inputs(2, 300, 4));
  row("three tiles", behind_relu_inputs(3, 40, 16));
  rounding(Rounding::sum);
  forward([](Rig& t) {
    interaction_backward_through_relu(t, 2, t.scratch("d_bias", TensorSpec(t["a"].dtype(), {t["a"].dim(1)})));
  });
}

/// Tests only f32: in other types, the sums of rounded values would differ from the reference.
OP_TEST(InteractionThroughReluWithSums) {
  row("dlrm", behind_relu_inputs(9, 26, 32));
  row("odd sizes", behind_relu_inputs(70, 6, 11));
  rounding(Rounding::sum);
  f32_only();
  forward([](Rig& t) { interaction_backward_through_relu(t, 0.5f, t.out("d_bias", {t["a"].dim(1)}, Type::wide)); });
  expected([](const auto& t) {
    const std::vector<double> a = t["a"], e = t["e"], dy = t["dy"];
    const size_t samples = t.size("a", 0), dim = t.size("a", 1), slots = t.size("e", 1), width = t.size("dy", 1);
    std::vector<double> d_a(a.size()), d_bias(dim);
    for (size_t b = 0; b < samples; ++b)
      for (size_t k = 0; k < dim; ++k) {
        double d = dy[b * width + k];
        for (size_t c = 0; c < slots; ++c) d += dy[b * width + dim + (c + 1) * c / 2] * e[(b * slots + c) * dim + k];
        d_a[b * dim + k] = a[b * dim + k] > 0 ? 0.5 * d : 0;
        d_bias[k] += d_a[b * dim + k];
      }
    t.expect("d_a", d_a);
    t.expect("d_bias", d_bias);
  });
}

class InteractionBehindRelu : public testing::TestWithParam<std::tuple<Device, bool, DType>> {};

/// The fused operator gives the results of separate operators and sums bit for bit, in every run.
TEST_P(InteractionBehindRelu, WritesWhatTheOperatorsAloneDo) {
  const auto [device, tf32, dtype] = GetParam();
  if (tf32 && dtype != DType::f32) GTEST_SKIP() << "TF32 is about f32";
  Runtime runtime(device, {.threads = 2, .seed = 7, .tf32 = tf32});
  Context ctx(runtime, runtime.compute_stream());
  for (const auto& [samples, slots, dim] :
       {std::array<int64_t, 3>{1, 1, 8}, {37, 26, 128}, {2500, 26, 16}, {517, 40, 24}, {5000, 3, 64}, {3, 63, 32}}) {
    const int64_t width = dim + slots * (slots + 1) / 2 + 1;
    const TensorSpec of_dense(dtype, {samples, dim}), of_slots(dtype, {samples, slots, dim});
    std::vector<Buffer> memory;
    const auto make = [&](const TensorSpec& spec, uint64_t seed) {
      memory.emplace_back(runtime.device(), spec.bytes());
      const Tensor t(memory.back().data(), spec, runtime.device());
      dispatch_float(spec.dtype, [&]<class T>() {
        std::vector<T> values(spec.bytes() / sizeof(T));
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = T(static_cast<float>(mix64(seed * 1'000'000'007 + i) >> 40) / static_cast<float>(1 << 23) - 1);
        copy_bytes(ctx.stream(), t.bytes(), values.data(), spec.bytes());
        ctx.stream().synchronize();
      });
      return t;
    };
    const Tensor dense = make(of_dense, 1), all_slots = make(of_slots, 2),
                 dy = make(TensorSpec(dtype, {samples, width}, (width + 7) / 8 * 8), 3);
    const Tensor scratch = make(ops::gradient_through_relu_scratch(of_dense), 4);
    std::vector<std::vector<float>> d_dense, d_slots, d_bias;
    for (const int way : {0, 1, 1}) {
      const Tensor d_a = make(of_dense, 5), d_e = make(of_slots, 6), sums = make(TensorSpec(DType::f32, {dim}), 7);
      const ops::ReluEnd end{2, sums, scratch};
      ops::interaction_backward(ctx, dense, all_slots, dy, d_a, d_e, {}, way == 1 ? std::optional(end) : std::nullopt);
      if (way == 0) ops::relu_bias_gradient(ctx, 2, dense, d_a, d_a, sums, scratch);
      dispatch_float(dtype, [&]<class T>() {
        for (const auto& [t, to] : {std::pair(&d_a, &d_dense), {&d_e, &d_slots}}) {
          const std::vector<T> values = to_host<T>(ctx.stream(), *t);
          to->emplace_back(values.begin(), values.end());
        }
      });
      d_bias.push_back(to_host<float>(ctx.stream(), sums));
    }
    const std::string row = cat(samples, " x ", slots, " x ", dim);
    EXPECT_EQ(d_dense[0], d_dense[1]) << row;
    EXPECT_EQ(d_slots[0], d_slots[1]) << row;
    EXPECT_EQ(d_bias[1], d_bias[2]) << row;
    for (size_t k = 0; k < d_bias[0].size(); ++k) {
      double size = 1;
      for (size_t i = k; i < d_dense[0].size(); i += d_bias[0].size()) size += std::abs(d_dense[0][i]);
      EXPECT_NEAR(d_bias[0][k], d_bias[1][k], 1e-6 * size) << row << ", column " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, InteractionBehindRelu,
                         testing::Combine(testing::ValuesIn(devices()), testing::Bool(),
                                          testing::Values(DType::f16, DType::bf16, DType::f32)));

OP_TEST(InteractionWithOneGradient) {
  row("of the slots", {{"a", {4, 8}}, {"e", {4, 3, 8}}});
  rounding(Rounding::sum);
  forward([](Rig& t) { ops::interaction(t.ctx, t["a"], t["e"], t.out("y", {4, 15})); });
  backward([](Rig& t) { ops::interaction_backward(t.ctx, t["a"], t["e"], t.d("y"), std::nullopt, t.d("e")); });
}

}  // namespace
}  // namespace hctr::test
