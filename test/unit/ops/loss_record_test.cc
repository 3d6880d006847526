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
                       reinterpret_cast<LossRecord*>(seen.data()));
      ctx.stream().synchronize();
      if (std::isfinite(losses[step])) {
        sum += static_cast<double>(losses[step]) * (100 + step);
        samples += 100 + step;
      }
      EXPECT_EQ(record->sum, sum) << step;
      EXPECT_EQ(record->samples, samples) << step;
      EXPECT_TRUE(record->loss == losses[step] || std::isnan(losses[step])) << step;
    }
  }
}

}  // namespace
}  // namespace hctr::test
