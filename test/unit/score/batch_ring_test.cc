// The device's view of a batch written by the reader.
#include "score/batch_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/device/copy_bytes.h"
#include "core/device/lockstep.h"
#include "ops/gemm/weight_gradient.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

constexpr int64_t kRows = 70, kDenseDim = 13;

BatchLayout layout_of(int64_t dense_stride, DType dtype = DType::f32) {
  return BatchLayout({.samples = kRows, .label_dim = 1, .dense_dim = kDenseDim, .tables = {{2, 2 * kRows}}},
                     dense_stride, dtype);
}

std::vector<float> write_dense(const BatchRing& ring, int buffer) {
  std::vector<float> values;
  for (int64_t i = 0; i < kRows * kDenseDim; ++i) values.push_back(static_cast<float>(buffer + 1 + i % 97));
  const BatchView view = ring.on_host(buffer);
  view.place(std::vector<KeyForm>{{.ones = true}});
  std::copy(values.begin(), values.end(), view.dense);
  return values;
}

TEST(BatchRing, GivesDenseValuesInRowsOfTheStrideOfItsLayout) {
  for (const Device device : devices())
    for (const int64_t stride : {kDenseDim, int64_t{16}}) {
      Runtime& runtime = runtime_of(device);
      Context ctx(runtime, runtime.compute_stream());
      const BatchRing ring(layout_of(stride), 2, device);
      for (const int buffer : {0, 1}) {
        const std::vector<float> expected = write_dense(ring, buffer);
        ring.upload(ctx.stream(), buffer);
        ring.unpack(ctx, buffer);
        const Tensor dense = *ring.dense(buffer);
        EXPECT_EQ(dense.row_stride(), stride);
        EXPECT_EQ(to_host<float>(ctx.stream(), dense), expected) << to_string(device) << ", stride " << stride;
        if (stride == kDenseDim) continue;
        const TensorSpec behind(DType::f32, {kRows, dense.spec().zero_columns}, stride);
        EXPECT_EQ(to_host<float>(ctx.stream(), Tensor(dense.data<float>() + kDenseDim, behind, device)),
                  std::vector<float>(static_cast<size_t>(kRows * (stride - kDenseDim)), 0.0f));
      }
    }
}

/// Integers up to 99 are exact in each dtype.
TEST(BatchRing, GivesDenseValuesInTheDtypeOfItsLayout) {
  for (const Device device : devices())
    for (const DType dtype : {DType::f16, DType::bf16}) {
      Runtime& runtime = runtime_of(device);
      Context ctx(runtime, runtime.compute_stream());
      const BatchRing ring(layout_of(16, dtype), 1, device);
      const std::vector<float> expected = write_dense(ring, 0);
      ring.upload(ctx.stream(), 0);
      ring.unpack(ctx, 0);
      const Tensor dense = *ring.dense(0);
      EXPECT_EQ(dense.dtype(), dtype);
      dispatch_float(dtype, [&]<class T>() {
        const std::vector<T> found = to_host<T>(ctx.stream(), dense);
        EXPECT_EQ(std::vector<float>(found.begin(), found.end()), expected) << to_string(device);
      });
    }
}

/// Padded dense values in TF32 are read with their padding, so that on Hopper one kernel computes the first layer's
/// wgrad with the other wgrads.
TEST(BatchRing, PaddedDenseValuesAreTakenInTf32AsThoseOfTwoBytesAre) {
  HCTR_SKIP_WITHOUT_GPU();
  constexpr int64_t kOut = 64;
  const auto run_of = [](Context& ctx, const Tensor& x) {
    const Buffer memory(kGpu, static_cast<size_t>((kRows + kDenseDim) * kOut) * sizeof(float));
    const Tensor d_w(memory.data(), TensorSpec(DType::f32, {kDenseDim, kOut}), kGpu),
        d_y(memory.data() + d_w.spec().bytes(), TensorSpec(x.dtype(), {kRows, kOut}), kGpu);
    Lockstep last(ctx);
    Context own = ctx.with_last_launches(&last);
    auto run = ops::WeightGradientRun::in_order;
    ops::choose_weight_gradient_run(own, x, d_y, d_w, run);
    return run;
  };
  Runtime& tf32 = runtime_of(kGpu, 4, true);
  Context ctx(tf32, tf32.compute_stream());
  const BatchRing padded(layout_of(16), 1, kGpu), plain(layout_of(0), 1, kGpu);
  const Tensor dense = *padded.dense(0);
  EXPECT_EQ(run_of(ctx, dense),
            run_of(ctx, Tensor(dense.bytes(), TensorSpec(DType::bf16, {kRows, kDenseDim}, 16), kGpu)));
  EXPECT_EQ(run_of(ctx, *plain.dense(0)), ops::WeightGradientRun::apart);
}

}  // namespace
}  // namespace hctr::test
