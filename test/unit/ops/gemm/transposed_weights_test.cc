#include "ops/gemm/transposed_weights.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>

#include "core/base/random.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "support/devices.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

/// Weights, and memory for their transposed copy, initialized with values that must be overwritten.
struct KeptWeights {
  Buffer memory;
  ops::TransposedWeights tensors;

  static size_t copy_at(const TensorSpec& w) { return (w.bytes() + 255) / 256 * 256; }
  KeptWeights(const Context& ctx, const TensorSpec& w)
      : memory(ctx.device(), copy_at(w) + ops::transposed_weights_spec(w).bytes()),
        tensors{Tensor(memory.data(), w, ctx.device()),
                Tensor(memory.data() + copy_at(w), ops::transposed_weights_spec(w), ctx.device())} {
    std::vector<float> numbers(memory.bytes() / sizeof(float));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(mix64(i) >> 40) + 1;
    copy_bytes(ctx.stream(), memory.data(), numbers.data(), numbers.size() * sizeof(float));
    ctx.stream().synchronize();
  }
};

TEST(TransposeWeights, WritesAllCopiesAndTheZerosBehindTheirRows) {
  for (const Device device : devices()) {
    Runtime runtime(device, {.threads = 2, .seed = 7});
    Context ctx(runtime, runtime.compute_stream());
    std::deque<KeptWeights> kept;
    std::vector<ops::TransposedWeights> all;
    const auto add = [&](TensorSpec spec) { all.push_back(kept.emplace_back(ctx, spec).tensors); };
    for (const auto& [in, out] : {std::array<int64_t, 2>{13, 512},
                                  {1024, 256},
                                  {479, 1024},
                                  {64, 64},
                                  {65, 63},
                                  {1, 1},
                                  {3, 1},
                                  {200, 129},
                                  {128, 70}})
      add(TensorSpec(DType::f32, {in, out}));
    add(TensorSpec(DType::f32, {70, 66}, 68));
    // more weights than one launch processes
    for (int i = 0; i < 100; ++i) add(TensorSpec(DType::f32, {i % 9 + 1, i % 7 + 1}));
    ops::transpose_weights(ctx, all);
    ctx.stream().synchronize();
    for (const auto& [w, copy] : all) {
      SCOPED_TRACE(cat(to_string(device), " ", to_string(w.shape())));
      const int64_t in = w.dim(0), out = w.dim(1), stride = copy.row_stride();
      EXPECT_EQ(stride, (in + 3) / 4 * 4);
      const std::vector<float> from = to_host<float>(ctx.stream(), w);
      const std::vector<float> to =
          to_host<float>(ctx.stream(), Tensor(copy.bytes(), TensorSpec(DType::f32, {out, stride}), device));
      for (int64_t o = 0; o < out; ++o)
        for (int64_t i = 0; i < stride; ++i)
          ASSERT_EQ(to[static_cast<size_t>(o * stride + i)], i < in ? from[static_cast<size_t>(i * out + o)] : 0)
              << o << ", " << i;
    }
  }
}

TEST(TransposeWeights, NamesACopyThatDoesNotFit) {
  Runtime runtime(kCpu, {});
  Context ctx(runtime, runtime.compute_stream());
  KeptWeights kept(ctx, TensorSpec(DType::f32, {5, 8}));
  const Tensor dense(kept.tensors.copy.bytes(), TensorSpec(DType::f32, {8, 5}), kCpu);
  const std::string text = message_of(Kind::bug, [&] { ops::transpose_weights(ctx, {{kept.tensors.w, dense}}); });
  EXPECT_NE(text.find("a transposed copy [8,5] with rows of 5 elements, of weights [5,8]"), std::string::npos) << text;
}

}  // namespace
}  // namespace hctr::test
