#include "ops/loss_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "device/arena.h"
#include "device/copy.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

using ops::LossRecord;

TEST(LossRecordOp, SumsFiniteLossesTimesTheirSamplesAndShowsTheLastOne) {
  for (const Device device : devices()) {
    SCOPED_TRACE(to_string(device));
    Runtime& runtime = runtime_of(device);
    const Buffer state(device, sizeof(StepState)), total(device, sizeof(LossRecord));
    const HostBuffer seen(device, sizeof(LossRecord));
    Arena arena;
    arena.add(TensorSpec(DType::f32, {1}));
    arena.build(device);
    Context ctx(runtime, runtime.compute_stream(), reinterpret_cast<StepState*>(state.data()));
    const auto* record = reinterpret_cast<const LossRecord*>(seen.data());
    double sum = 0;
    int64_t samples = 0;
    const float losses[] = {0.5f, 0.25f, std::nanf(""), 3e38f, std::numeric_limits<float>::infinity(), -1};
    for (int step = 0; step < 6; ++step) {
      const StepState now{.step = step, .global_samples = 100 + step};
      copy_bytes(ctx.stream(), state.data(), &now, sizeof now);
      from_host(ctx.stream(), arena.get(0), std::vector<float>{losses[step]});
      ops::record_loss(ctx, arena.get(0), reinterpret_cast<LossRecord*>(total.data()),
                       reinterpret_cast<LossRecord*>(seen.data()), nullptr, nullptr);
      ctx.stream().synchronize();
      if (std::isfinite(losses[step])) {
        sum += static_cast<double>(losses[step]) * (100 + step);
        samples += 100 + step;
      }
      EXPECT_EQ(record->sum, sum) << step;
      EXPECT_EQ(record->samples, samples) << step;
      EXPECT_TRUE(record->loss == losses[step] || std::isnan(losses[step])) << step;
      EXPECT_EQ(record->step, step);
      EXPECT_EQ(record->stopped, 0);
    }
  }
}

TEST(LossRecordOp, SkipsTheFirstStepWhoseLossIsNotFiniteAndAllAfterIt) {
  for (const Device device : devices()) {
    SCOPED_TRACE(to_string(device));
    Runtime& runtime = runtime_of(device);
    const Buffer state(device, sizeof(StepState)), total(device, sizeof(LossRecord));
    const HostBuffer seen(device, sizeof(LossRecord));
    Arena arena;
    arena.add(TensorSpec(DType::f32, {1}));
    arena.build(device);
    auto* const on_device = reinterpret_cast<StepState*>(state.data());
    Context ctx(runtime, runtime.compute_stream(), on_device);
    const float losses[] = {0.5f, std::nanf(""), 0.25f, std::numeric_limits<float>::infinity()};
    for (int step = 0; step < 4; ++step) {
      StepState now{.step = 10 + step, .global_samples = 100};
      copy_bytes(ctx.stream(), state.data(), &now, sizeof now);
      from_host(ctx.stream(), arena.get(0), std::vector<float>{losses[step]});
      ops::record_loss(ctx, arena.get(0), reinterpret_cast<LossRecord*>(total.data()),
                       reinterpret_cast<LossRecord*>(seen.data()), on_device, nullptr);
      copy_bytes(ctx.stream(), &now, state.data(), sizeof now);
      ctx.stream().synchronize();
      EXPECT_EQ(now.skip, step > 0) << step;
      EXPECT_EQ(reinterpret_cast<const LossRecord*>(seen.data())->stopped, step > 0 ? 12 : 0) << step;
    }
  }
}

TEST(LossRecordOp, CountsStepsThatWereSkippedInARow) {
  for (const Device device : devices()) {
    SCOPED_TRACE(to_string(device));
    Runtime& runtime = runtime_of(device);
    const Buffer state(device, sizeof(StepState)), total(device, sizeof(LossRecord)),
        scale(device, sizeof(ops::LossScale));
    const HostBuffer seen(device, sizeof(LossRecord));
    Arena arena;
    arena.add(TensorSpec(DType::f32, {1}));
    arena.build(device);
    Context ctx(runtime, runtime.compute_stream(), reinterpret_cast<StepState*>(state.data()));
    const int64_t skipped[] = {0, 1, 2, 2, 3}, in_row[] = {0, 1, 2, 0, 1};
    for (int step = 0; step < 5; ++step) {
      const ops::LossScale now{.skipped = skipped[step]};
      copy_bytes(ctx.stream(), scale.data(), &now, sizeof now);
      ops::record_loss(ctx, arena.get(0), reinterpret_cast<LossRecord*>(total.data()),
                       reinterpret_cast<LossRecord*>(seen.data()), nullptr,
                       reinterpret_cast<const ops::LossScale*>(scale.data()));
      ctx.stream().synchronize();
      EXPECT_EQ(reinterpret_cast<const LossRecord*>(seen.data())->skipped_in_row, in_row[step]) << step;
    }
  }
}

}  // namespace
}  // namespace hctr::test
