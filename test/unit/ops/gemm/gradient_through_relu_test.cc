// The gradient through a ReLU, in one operator with the preceding GEMM and the following sums.
#include "ops/gemm/gradient_through_relu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/device/arena.h"
#include "core/device/copy_bytes.h"
#include "ops/common/rounding.h"
#include "ops/gemm/bias_gradient.h"
#include "ops/gemm/linear.h"
#include "support/devices.h"
#include "support/near_values.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

using ops::Transpose;

std::vector<Input> relu_inputs(int64_t batch, int64_t in, int64_t out) {
  return {{"d_out", {batch, out}}, {"w", {in, out}}, {"y", {batch, in}}};
}

/// Shapes around the smallest tile of the Hopper kernels, 64 x 64, and their steps of 64 along `out`.
void relu_rows(auto& test) {
  test.rounding(Rounding::sum);
  test.row("one tile", relu_inputs(64, 64, 64));
  test.row("parts of tiles", relu_inputs(70, 136, 200));
  test.row("single elements", relu_inputs(33, 21, 5));
  test.row("one row", relu_inputs(1, 24, 16));
  test.row("one output", relu_inputs(200, 136, 1));
}

OP_TEST(GradientThroughRelu) {
  relu_rows(*this);
  forward([](Rig& t) {
    const Tensor d_z = t.out("d_z", t["y"].shape());
    ops::gradient_through_relu(t.ctx, t["d_out"], t["w"], 2, t["y"], d_z,
                               t.scratch("d_bias", TensorSpec(d_z.dtype(), {d_z.dim(1)})),
                               t.scratch("sums", ops::gradient_through_relu_scratch(d_z.spec())));
  });
}

/// Tests only f32: in other types, the sums of rounded values would differ from the reference.
OP_TEST(GradientThroughReluWithSums) {
  relu_rows(*this);
  f32_only();
  forward([](Rig& t) {
    const Tensor d_z = t.out("d_z", t["y"].shape()), d_bias = t.out("d_bias", {d_z.dim(1)}, Type::wide);
    ops::gradient_through_relu(t.ctx, t["d_out"], t["w"], 0.5f, t["y"], d_z, d_bias,
                               t.scratch("sums", ops::gradient_through_relu_scratch(d_z.spec())));
  });
  expected([](const auto& t) {
    const std::vector<double> d_out = t["d_out"], w = t["w"], y = t["y"];
    const size_t batch = t.size("y", 0), in = t.size("y", 1), out = t.size("w", 1);
    std::vector<double> d_z(y.size()), d_bias(in);
    for (size_t b = 0; b < batch; ++b)
      for (size_t i = 0; i < in; ++i) {
        for (size_t o = 0; o < out; ++o) d_z[b * in + i] += 0.5 * d_out[b * out + o] * w[i * out + o];
        if (y[b * in + i] <= 0) d_z[b * in + i] = 0;
        d_bias[i] += d_z[b * in + i];
      }
    t.expect("d_z", d_z);
    t.expect("d_bias", d_bias);
  });
}

struct ReluCase {
  const char* name;
  int64_t batch, in, out;
};
void PrintTo(const ReluCase& c, std::ostream* out) { *out << c.name; }

class LargeGradientThroughRelu : public testing::TestWithParam<std::tuple<ReluCase, DType>> {};

/// Tests larger tiles, which are selected only with as many multiprocessors as a real GPU has. Compares with separate
/// operators.
TEST_P(LargeGradientThroughRelu, IsWhatTheOperatorsAloneCompute) {
  HCTR_SKIP_WITHOUT_GPU();
  const ReluCase c = std::get<0>(GetParam());
  const DType dtype = std::get<1>(GetParam());
  Rig t({kGpu, dtype, dtype, {{"rows of 16 bytes", 8}}, 1, relu_inputs(c.batch, c.in, c.out), {}});
  const Shape shape{c.batch, c.in};
  const Tensor d_z = t.out("d_z", shape), d_bias = t.out("d_bias", {c.in}, Type::wide);
  const Tensor d2 = t.out("d2", shape), d_bias2 = t.out("d_bias2", {c.in}, Type::wide);
  const Tensor sums = t.scratch("sums", ops::gradient_through_relu_scratch(d_z.spec()));
  ops::gradient_through_relu(t.ctx, t["d_out"], t["w"], 2, t["y"], d_z, d_bias, sums);
  ops::matmul(t.ctx, t["d_out"], Transpose::no, t["w"], Transpose::yes, d2);
  ops::relu_bias_gradient(t.ctx, 2, t["y"], d2, d2, d_bias2, sums);
  EXPECT_EQ(t.fetch(), std::vector<std::string>());
  // This operator rounds each element once; the separate operators round twice.
  expect_near(t, "d_z", "d2", c.in);
  expect_near(t, "d_bias", "d_bias2", c.in, std::sqrt(static_cast<double>(c.batch * c.out)));
}

// Tile selection depends on the number of multiprocessors. With 132 multiprocessors, these shapes get the tiles in
// their names.
INSTANTIATE_TEST_SUITE_P(All, LargeGradientThroughRelu,
                         testing::Combine(testing::Values(ReluCase{"128 x 256", 16900, 256, 40},
                                                          ReluCase{"128 x 256, deep, part of a tile", 8600, 512, 600},
                                                          ReluCase{"128 x 208", 16385, 400, 400},
                                                          ReluCase{"128 x 208, part of a tile", 16390, 392, 136},
                                                          ReluCase{"128 x 128", 8930, 248, 136},
                                                          ReluCase{"128 x 128, odd rows", 16897, 128, 72},
                                                          ReluCase{"128 x 64", 2048, 400, 400},
                                                          ReluCase{"64 x 64", 500, 1024, 1000}),
                                          testing::Values(DType::f16, DType::bf16)));

/// Whether the overflow check of y detects the value `number` at element `at`.
bool finds(Device device, DType dtype, int64_t in, size_t at, double number) {
  const Shape shape{70, in};
  Rig t({device, dtype, dtype, {{"rows of 16 bytes", 8}}, 1, relu_inputs(shape[0], in, 72), {}});
  t.perturb("y", at, number);
  const Tensor d_z = t.out("d_z", shape), d_bias = t.out("d_bias", {in}, Type::wide);
  Arena found;
  found.add(TensorSpec(DType::f32, {1}));
  found.build(device);
  from_host(t.ctx.stream(), found.get(0), std::vector<float>{0});
  ops::gradient_through_relu(t.ctx, t["d_out"], t["w"], 2, t["y"], d_z, d_bias,
                             t.scratch("sums", ops::gradient_through_relu_scratch(d_z.spec())),
                             {ops::kLargest<float>, found.get(0).data<float>()});
  return to_host<float>(t.ctx.stream(), found.get(0))[0] > 0;
}

/// Covers rows of a multiple of 16 bytes, which a Hopper kernel checks while it reads them, and rows of other sizes.
TEST(GradientThroughReluSearch, FindsWhatIsNotFiniteInY) {
  for (const Device device : devices())
    for (const DType dtype : {DType::f16, DType::f32})
      for (const int64_t in : {136, 133}) {
        SCOPED_TRACE(cat(to_string(device), " ", name_of(dtype), " ", in));
        const auto last = static_cast<size_t>(70 * in - 1);
        EXPECT_FALSE(finds(device, dtype, in, 0, 1000));
        for (const size_t at : {size_t{0}, size_t{77}, last}) {
          EXPECT_TRUE(finds(device, dtype, in, at, INFINITY)) << at;
          EXPECT_TRUE(finds(device, dtype, in, at, -INFINITY)) << at;
          EXPECT_TRUE(finds(device, dtype, in, at, NAN)) << at;
        }
      }
}

}  // namespace
}  // namespace hctr::test
