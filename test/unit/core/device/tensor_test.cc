#include "core/device/tensor.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/device/arena.h"
#include "core/device/copy_bytes.h"
#include "support/devices.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

std::string message(const std::function<void()>& body) {
  const std::string text = message_of(Kind::bug, body);
  return text.substr(0, text.find("; src"));
}

TEST(TensorSpec, CountsRowsElementsAndBytes) {
  const TensorSpec dense(DType::f16, {4, 3, 5});
  EXPECT_EQ(dense.rows(), 4);
  EXPECT_EQ(dense.row_elements(), 15);
  EXPECT_EQ(dense.row_stride, 15);
  EXPECT_TRUE(dense.dense());
  EXPECT_EQ(dense.bytes(), 4u * 15 * 2);

  const TensorSpec padded(DType::f32, {4, 15}, 16);
  EXPECT_FALSE(padded.dense());
  EXPECT_EQ(padded.bytes(), 4u * 16 * 4);
  EXPECT_TRUE(TensorSpec(DType::f32, {1, 15}, 16).dense()) << "one row has no next";

  const TensorSpec none(DType::f32, {0, 15});
  EXPECT_EQ(none.row_elements(), 0);
  EXPECT_EQ(none.bytes(), 0u);
}

TEST(TensorSpec, RefusesRowsThatOverlap) {
  EXPECT_EQ(message([] { TensorSpec(DType::f32, {4, 15}, 14); }), "row stride 14 for shape [4,15]");
}

TEST(Shape, HasAtMostFourDimensions) {
  EXPECT_EQ(message([] { Shape({1, 2, 3, 4, 5}); }), "a shape of 5 dimensions");
  EXPECT_EQ(to_string(Shape{64, 26, 16}), "[64,26,16]");
  EXPECT_EQ(Shape{}.elements(), 1);
}

/// A tensor of 3 rows and 4 columns with stride 6: element (r, c) is at r * 6 + c.
struct Strided {
  std::vector<float> memory = [] {
    std::vector<float> values(18);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    return values;
  }();
  Tensor tensor{memory.data(), TensorSpec(DType::f32, {3, 4}, 6), kCpu};
};

TEST(Tensor, ViewsFollowTheRowStride) {
  Strided s;
  const auto view = s.tensor.view<const float, 2>();
  EXPECT_EQ(view(0, 0), 0);
  EXPECT_EQ(view(2, 3), 15);
  EXPECT_EQ(*view.row(1), 6);
  const Tensor cube(s.memory.data(), TensorSpec(DType::f32, {2, 2, 3}, 8), kCpu);
  EXPECT_EQ((cube.view<const float, 3>()(1, 1, 2)), 8 + 3 + 2);
}

TEST(Tensor, ColumnsAndRowsAreViewsOfTheSameMemory) {
  Strided s;
  const Tensor part = s.tensor.columns(1, 3).row_range(1, 3);
  EXPECT_EQ(part.shape(), (Shape{2, 2}));
  EXPECT_EQ(part.row_stride(), 6);
  EXPECT_EQ((part.view<const float, 2>()(1, 1)), 14);
  EXPECT_EQ(s.tensor.columns(4, 4).elements(), 0);
  EXPECT_EQ(s.tensor.row_range(3, 3).elements(), 0);
}

TEST(Tensor, RefusesRangesOutsideItself) {
  Strided s;
  EXPECT_EQ(message([&] { s.tensor.columns(2, 5); }), "columns 2 to 5 of [3,4]");
  EXPECT_EQ(message([&] { s.tensor.row_range(2, 1); }), "rows 2 to 1 of [3,4]");
}

TEST(Tensor, ReshapesDenseTensorsFreelyAndStridedOnesWithinRows) {
  Strided s;
  EXPECT_EQ(s.tensor.reshaped({3, 2, 2}).row_stride(), 6);
  EXPECT_EQ(message([&] { s.tensor.reshaped({4, 3}); }), "strided rows of [3,4] reshaped to [4,3]");
  EXPECT_EQ(message([&] { s.tensor.reshaped({3, 5}); }), "[3,4] reshaped to [3,5]");
  const Tensor dense(s.memory.data(), TensorSpec(DType::f32, {3, 6}), kCpu);
  EXPECT_EQ(dense.reshaped({2, 9}).row_stride(), 9);
}

TEST(Tensor, RefusesAnotherTypeOrRank) {
  Strided s;
  EXPECT_EQ(message([&] { s.tensor.data<Half>(); }), "tensor of f32 used as f16");
  EXPECT_EQ(message([&] { s.tensor.view<float, 3>(); }), "tensor of shape [3,4] used as a tensor of rank 3");
  const Tensor other(s.memory.data(), TensorSpec(DType::i32, {3, 4}), kCpu);
  EXPECT_EQ(message([&] { expect_alike("op", {s.tensor, other}); }), "op: f32 on cpu together with i32 on cpu");
  EXPECT_EQ(message([&] { expect_on("op", kGpu, s.tensor); }), "op: a tensor on cpu used on cuda:0");
  EXPECT_EQ(message([&] { expect_shape("y", s.tensor, {3, 5}); }), "y: shape [3,4], expected [3,5]");
}

TEST(Tensor, IsCopiedToAndFromTheHostWithoutItsPadding) {
  for (const Device device : devices()) {
    const StreamRef stream = runtime_of(device).compute_stream();
    Buffer memory(device, 3 * 6 * sizeof(float));
    const Tensor padded(memory.data(), TensorSpec(DType::f32, {3, 4}, 6), device);
    const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    from_host(stream, padded, values);
    EXPECT_EQ(to_host<float>(stream, padded), values);
    const Tensor all(memory.data(), TensorSpec(DType::f32, {18}), device);
    EXPECT_EQ(to_host<float>(stream, all),
              (std::vector<float>{1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 0, 0, 9, 10, 11, 12, 0, 0}));
    EXPECT_EQ(message([&] { from_host(stream, padded, std::vector<float>(5)); }), "5 values for [3,4]");
    EXPECT_EQ(message([&] { zero(stream, padded); }), "zero() needs dense rows, found strided rows of [3,4]");
    zero(stream, all);
    EXPECT_EQ(to_host<float>(stream, all), std::vector<float>(18));
  }
}

TEST(Arena, ReturnsAlignedZeroedTensorsThatDoNotOverlap) {
  for (const Device device : devices()) {
    Arena arena;
    const size_t a = arena.add(TensorSpec(DType::f32, {3, 5}, 8)), none = arena.add(TensorSpec(DType::f32, {0, 4})),
                 b = arena.add(TensorSpec(DType::f16, {129}));
    EXPECT_EQ(message([&] { arena.get(a); }), "build the arena before requesting its tensors");
    arena.build(device);
    EXPECT_EQ(message([&] { arena.add(TensorSpec()); }),
              "a tensor cannot be added to an arena that is already "
              "built");
    EXPECT_EQ(arena.get(none).elements(), 0);
    EXPECT_EQ(arena.get(a).spec(), TensorSpec(DType::f32, {3, 5}, 8));
    EXPECT_GE(arena.get(b).bytes() - arena.get(a).bytes(), 96);
    for (const size_t ticket : {a, b}) EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.get(ticket).bytes()) % 256, 0u);
    EXPECT_EQ(arena.bytes(), 256u + 512u);
    EXPECT_EQ(arena.flat().elements(), 192);
    for (const float value : to_host<float>(runtime_of(device).compute_stream(), arena.flat())) EXPECT_EQ(value, 0);
  }
}

}  // namespace
}  // namespace hctr::test
