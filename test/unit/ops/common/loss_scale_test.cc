#include "ops/common/loss_scale.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "core/device/arena.h"
#include "core/device/copy_bytes.h"
#include "ops/common/copy.h"
#include "ops/common/rounding.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

using ops::LossScale;
using ops::LossScaleRule;

/// The step state, the loss scale and the overflow flag on one device.
struct Step {
  explicit Step(Device device, LossScale start = {.scale = 1024})
      : runtime(runtime_of(device)),
        state(device, sizeof(StepState)),
        scale(device, sizeof(LossScale)),
        ctx(runtime, runtime.compute_stream(), reinterpret_cast<StepState*>(state.data())) {
    flag.add(TensorSpec(DType::f32, {1}));
    flag.build(device);
    copy_bytes(ctx.stream(), scale.data(), &start, sizeof start);
    ctx.stream().synchronize();
  }
  StepState* device_state() { return reinterpret_cast<StepState*>(state.data()); }
  LossScale* device_scale() { return reinterpret_cast<LossScale*>(scale.data()); }

  /// Runs one step, with or without an overflow. Returns the step state for the update.
  StepState take(int64_t step, bool overflow, LossScaleRule rule) {
    const StepState uploaded{.step = step, .loss_scale = 1, .skip = 1};
    copy_bytes(ctx.stream(), state.data(), &uploaded, sizeof uploaded);
    ctx.stream().synchronize();
    ops::begin_scaled_step(ctx, device_scale(), device_state(), flag.get(0));
    if (overflow) from_host(ctx.stream(), flag.get(0), std::vector<float>{1});
    ops::end_scaled_step(ctx, rule, flag.get(0), device_scale(), device_state());
    StepState after;
    copy_bytes(ctx.stream(), &after, state.data(), sizeof after);
    copy_bytes(ctx.stream(), &now, scale.data(), sizeof now);
    ctx.stream().synchronize();
    return after;
  }

  Runtime& runtime;
  Buffer state, scale;
  Arena flag;
  Context ctx;
  LossScale now;
};

TEST(LossScaleOp, ASkippedStepDoesNotCountAsAnUpdate) {
  for (const Device device : devices()) {
    Step step(device);
    const LossScaleRule fixed{};
    EXPECT_EQ(step.take(0, false, fixed).skip, 0);
    EXPECT_EQ(step.take(1, true, fixed).skip, 1);
    EXPECT_EQ(step.take(2, true, fixed).updates, 1);
    const StepState third = step.take(3, false, fixed);
    EXPECT_EQ(third.updates, 1) << to_string(device);
    EXPECT_EQ(third.skip, 0);
    EXPECT_EQ(third.loss_scale, 1024);
    EXPECT_EQ(step.now.skipped, 2);
    EXPECT_EQ(step.now.scale, 1024) << "a fixed scale moved";
  }
}

TEST(LossScaleOp, ADynamicScaleHalvesAtAnOverflowAndDoublesAfterPatience) {
  for (const Device device : devices()) {
    Step step(device);
    const LossScaleRule rule{.dynamic = true, .patience = 3};
    int64_t t = 0;
    step.take(t++, true, rule);
    EXPECT_EQ(step.now.scale, 512);
    EXPECT_EQ(step.take(t++, false, rule).loss_scale, 512) << "the next step uses the new scale";
    step.take(t++, false, rule);
    EXPECT_EQ(step.now.scale, 512);
    step.take(t++, false, rule);
    EXPECT_EQ(step.now.scale, 1024) << to_string(device);
    step.take(t++, false, rule);
    step.take(t++, false, rule);
    step.take(t++, true, rule);  // the overflow restarts the patience count
    step.take(t++, false, rule);
    step.take(t++, false, rule);
    EXPECT_EQ(step.now.scale, 512);
  }
}

TEST(LossScaleOp, TheScaleKeepsItsBounds) {
  const LossScaleRule rule{.dynamic = true, .patience = 1, .least = 4, .most = 16};
  for (const Device device : devices()) {
    Step step(device, {.scale = 8});
    for (int64_t t = 0; t < 4; ++t) step.take(t, false, rule);
    EXPECT_EQ(step.now.scale, 16);
    for (int64_t t = 0; t < 4; ++t) step.take(t, true, rule);
    EXPECT_EQ(step.now.scale, 4) << to_string(device);
  }
}

TEST(LossScaleOp, AnOverflowIsFoundInEveryElementAndPaddingIsIgnored) {
  constexpr int64_t kRows = 37, kColumns = 21, kStride = 24;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Device device : devices())
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      Step step(device);
      Arena arena;
      arena.add(TensorSpec(dtype, {kRows, kColumns}, kStride));
      arena.add(TensorSpec(dtype, {kRows, kStride}));
      arena.build(device);
      const Tensor whole(arena.get(0).bytes(), TensorSpec(dtype, {kRows, kStride}), device);  // rows with their padding
      Arena host;
      host.add(TensorSpec(DType::f32, {kRows, kStride}));
      host.build(device);
      float largest = ops::kLargest<float>;
      const auto found = [&](int64_t row, int64_t column, float value) {
        std::vector<float> values(kRows * kStride, 60000.0f);  // 60000 is large, but finite in every dtype
        values[static_cast<size_t>(row * kStride + column)] = value;
        from_host(step.ctx.stream(), host.get(0), values);
        ops::copy(step.ctx, host.get(0), whole);
        from_host(step.ctx.stream(), step.flag.get(0), std::vector<float>{0});
        ops::find_overflow(step.ctx, arena.get(0), {largest, step.flag.get(0).data<float>()});
        return to_host<float>(step.ctx.stream(), step.flag.get(0))[0] > 0;
      };
      EXPECT_FALSE(found(0, 0, 1)) << to_string(device) << " " << name_of(dtype);
      for (const auto& [row, column] : {std::pair<int64_t, int64_t>{0, 0}, {0, 20}, {17, 8}, {36, 0}, {36, 20}})
        for (const float value : {infinity, -infinity, std::nanf("")})
          EXPECT_TRUE(found(row, column, value))
              << to_string(device) << " " << name_of(dtype) << " " << row << "," << column;
      EXPECT_FALSE(found(36, 22, infinity)) << "padding was read";
      largest = 61440;  // 61440 is exact in every dtype, and no dtype rounds 60000 to more
      EXPECT_FALSE(found(17, 8, -61440)) << name_of(dtype);
      for (const float value : {65000.0f, -65000.0f, infinity, std::nanf("")})
        EXPECT_TRUE(found(17, 8, value)) << name_of(dtype) << " " << value;
    }
}

/// Gradients of three sizes: for many GPU blocks, for one block, and 0. All steps reuse one block counter.
TEST(LossScaleOp, ASearchThatEndsTheStepIsTheSearchAndThenTheEnd) {
  const LossScaleRule rule{.dynamic = true, .patience = 2};
  for (const Device device : devices())
    for (const int64_t size : {1 << 20, 70, 0}) {
      Step step(device);
      Arena arena;
      arena.add(TensorSpec(DType::f32, {size}));
      arena.add(TensorSpec(DType::i32, {1}));
      arena.build(device);
      const auto scale_after = [&](int64_t at, float value) {
        std::vector<float> values(static_cast<size_t>(size), 3.0f);
        if (size > 0) values[static_cast<size_t>(at)] = value;
        from_host(step.ctx.stream(), arena.get(0), values);
        ops::begin_scaled_step(step.ctx, step.device_scale(), step.device_state(), step.flag.get(0));
        ops::end_scaled_step_after_search(step.ctx, {arena.get(0)},
                                          {ops::kLargest<float>, step.flag.get(0).data<float>()}, rule,
                                          step.flag.get(0), arena.get(1), step.device_scale(), step.device_state());
        copy_bytes(step.ctx.stream(), &step.now, step.scale.data(), sizeof step.now);
        EXPECT_EQ(to_host<int32_t>(step.ctx.stream(), arena.get(1))[0], 0);
        return step.now.scale;
      };
      const float infinity = std::numeric_limits<float>::infinity();
      EXPECT_EQ(scale_after(0, 1), 1024);
      EXPECT_EQ(scale_after(0, 1), 2048) << "two good steps, each counted once";
      if (size == 0) continue;
      EXPECT_EQ(scale_after(0, infinity), 1024) << to_string(device) << " " << size;
      EXPECT_EQ(scale_after(size - 1, infinity), 512) << to_string(device) << " " << size;
      EXPECT_EQ(step.now.skipped, 2);
    }
}

/// More tensors than one kernel accepts, of every dtype. Some have gaps after their rows, which the check must ignore.
TEST(LossScaleOp, ASearchThatEndsTheStepLooksAtEachTensor) {
  constexpr size_t kTensors = 60;
  for (const Device device : devices()) {
    Step step(device);
    Arena arena;
    arena.add(TensorSpec(DType::i32, {1}));
    for (size_t i = 0; i < kTensors; ++i) {
      const DType dtype = std::array{DType::f32, DType::f16, DType::bf16}[i % 3];
      const auto columns = static_cast<int64_t>(i * 5 % 37);
      arena.add(TensorSpec(dtype, {7, columns}, columns + static_cast<int64_t>(i % 4)));
    }
    arena.build(device);
    std::vector<Tensor> all;
    for (size_t i = 1; i <= kTensors; ++i) all.push_back(arena.get(i));
    /// Returns whether the step is skipped when the last element of tensor `spoilt` has the value `last`.
    const auto skips = [&](std::optional<size_t> spoilt, float last) {
      for (size_t i = 0; i < kTensors; ++i) {
        const int64_t stride = all[i].row_stride(), columns = all[i].dim(1), elements = stride * 7;
        std::vector<float> values(static_cast<size_t>(elements), 1);
        for (int64_t e = 0; e < elements; ++e)
          if (e % stride >= columns) values[static_cast<size_t>(e)] = NAN;  // the gap after each row is NaN
        if (i == spoilt) values[static_cast<size_t>(6 * stride + columns - 1)] = last;
        Arena numbers;
        numbers.add(TensorSpec(DType::f32, {elements}));
        numbers.build(device);
        from_host(step.ctx.stream(), numbers.get(0), values);
        ops::copy(step.ctx, numbers.get(0), Tensor(all[i].bytes(), TensorSpec(all[i].dtype(), {elements}), device));
        step.ctx.stream().synchronize();
      }
      step.take(1, false, {});
      const int64_t before = step.now.skipped;
      ops::begin_scaled_step(step.ctx, step.device_scale(), step.device_state(), step.flag.get(0));
      ops::end_scaled_step_after_search(step.ctx, all, {ops::kLargest<float>, step.flag.get(0).data<float>()}, {},
                                        step.flag.get(0), arena.get(0), step.device_scale(), step.device_state());
      copy_bytes(step.ctx.stream(), &step.now, step.scale.data(), sizeof step.now);
      step.ctx.stream().synchronize();
      return step.now.skipped > before;
    };
    EXPECT_FALSE(skips(std::nullopt, 1)) << to_string(device);
    constexpr std::array kOverflows = {INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < kTensors; ++i) {
      if (all[i].dim(1) == 0) continue;
      EXPECT_TRUE(skips(i, kOverflows[i / 3 % 3])) << to_string(device) << ", tensor " << i;
    }
  }
}

}  // namespace
}  // namespace hctr::test
