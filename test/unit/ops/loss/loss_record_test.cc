#include "ops/loss/loss_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "core/device/arena.h"
#include "core/device/copy_bytes.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

using ops::LossRecord;

/// Records the losses of steps on one device.
class Recorder {
 public:
  explicit Recorder(Device device)
      : runtime_(runtime_of(device)),
        state_(device, sizeof(StepState)),
        total_(device, sizeof(LossRecord)),
        scale_(device, sizeof(ops::LossScale)),
        spoiled_(device, sizeof(int32_t)),
        seen_(device, sizeof(LossRecord)) {
    arena_.add(TensorSpec(DType::f32, {1}));
    arena_.build(device);
  }

  /// Records a loss and returns the step state afterwards. `stops`: whether a loss that is not finite stops the steps.
  /// `spoiled`: the flag that an update sets if it produces a value that is not finite.
  StepState step(StepState now, float loss, bool stops, std::optional<ops::LossScale> scale = std::nullopt,
                 int32_t spoiled = 0) {
    auto* const state = reinterpret_cast<StepState*>(state_.data());
    Context ctx(runtime_, runtime_.compute_stream(), state);
    copy_bytes(ctx.stream(), state_.data(), &now, sizeof now);
    if (scale) copy_bytes(ctx.stream(), scale_.data(), &*scale, sizeof *scale);
    copy_bytes(ctx.stream(), spoiled_.data(), &spoiled, sizeof spoiled);
    from_host(ctx.stream(), arena_.get(0), std::vector<float>{loss});
    ops::record_loss(ctx, arena_.get(0), reinterpret_cast<const int32_t*>(spoiled_.data()),
                     reinterpret_cast<LossRecord*>(total_.data()), reinterpret_cast<LossRecord*>(seen_.data()),
                     stops ? state : nullptr, scale ? reinterpret_cast<const ops::LossScale*>(scale_.data()) : nullptr);
    copy_bytes(ctx.stream(), &now, state_.data(), sizeof now);
    ctx.stream().synchronize();
    return now;
  }
  const LossRecord& seen() const { return *reinterpret_cast<const LossRecord*>(seen_.data()); }

 private:
  Runtime& runtime_;
  Buffer state_, total_, scale_, spoiled_;
  HostBuffer seen_;
  Arena arena_;
};

/// The update of step 6 makes the model not finite. Step 7 detects this, and changes nothing.
TEST(LossRecordOp, StopsAfterAnUpdateThatHasSpoiledTheModel) {
  for (const Device device : devices())
    for (const bool stops : {true, false}) {
      SCOPED_TRACE(cat(to_string(device), stops));
      Recorder recorder(device);
      const auto step = [&](int64_t number, int32_t spoiled, float loss) {
        return recorder.step({.step = number}, loss, stops, std::nullopt, spoiled).skip;
      };
      EXPECT_EQ(step(6, 0, 1), 0);
      EXPECT_EQ(recorder.seen().spoiled, 0);
      EXPECT_EQ(step(7, 1, 1), stops);
      EXPECT_EQ(recorder.seen().spoiled, 7) << "1 + the step";
      EXPECT_EQ(step(8, 1, std::nanf("")), stops);
      EXPECT_EQ(recorder.seen().spoiled, 7);
      EXPECT_EQ(recorder.seen().stopped, 0) << "what came first is told";
    }
}

TEST(LossRecordOp, SumsFiniteLossesTimesTheirSamplesAndShowsTheLastOne) {
  for (const Device device : devices()) {
    SCOPED_TRACE(to_string(device));
    Recorder recorder(device);
    double sum = 0;
    int64_t samples = 0;
    const float losses[] = {0.5f, 0.25f, std::nanf(""), 3e38f, std::numeric_limits<float>::infinity(), -1};
    for (int step = 0; step < 6; ++step) {
      recorder.step({.step = step, .global_samples = 100 + step}, losses[step], false);
      const LossRecord& record = recorder.seen();
      if (std::isfinite(losses[step])) {
        sum += static_cast<double>(losses[step]) * (100 + step);
        samples += 100 + step;
      }
      EXPECT_EQ(record.sum, sum) << step;
      EXPECT_EQ(record.samples, samples) << step;
      EXPECT_TRUE(record.loss == losses[step] || std::isnan(losses[step])) << step;
      EXPECT_EQ(record.step, step);
      EXPECT_EQ(record.stopped, 0);
    }
  }
}

TEST(LossRecordOp, SkipsTheFirstStepWhoseLossIsNotFiniteAndAllAfterIt) {
  for (const Device device : devices()) {
    SCOPED_TRACE(to_string(device));
    Recorder recorder(device);
    const float losses[] = {0.5f, std::nanf(""), 0.25f, std::numeric_limits<float>::infinity()};
    for (int step = 0; step < 4; ++step) {
      const StepState after = recorder.step({.step = 10 + step, .global_samples = 100}, losses[step], true);
      EXPECT_EQ(after.skip, step > 0) << step;
      EXPECT_EQ(recorder.seen().stopped, step > 0 ? 12 : 0) << step;
    }
  }
}

TEST(LossRecordOp, CountsStepsThatWereSkippedInARow) {
  for (const Device device : devices()) {
    SCOPED_TRACE(to_string(device));
    Recorder recorder(device);
    const int64_t skipped[] = {0, 1, 2, 2, 3}, in_row[] = {0, 1, 2, 0, 1};
    for (int step = 0; step < 5; ++step) {
      recorder.step({.step = step}, 0.5f, false, ops::LossScale{.skipped = skipped[step]});
      EXPECT_EQ(recorder.seen().skipped_in_row, in_row[step]) << step;
    }
  }
}

}  // namespace
}  // namespace hctr::test
