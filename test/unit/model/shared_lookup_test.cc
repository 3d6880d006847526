// Layers for dense values beside a look-up of vectors, and a bottom layer that the interaction finishes: steps of a
// small DLRM are the same recorded or not, every time, and nearly those of the CPU.
#include <gtest/gtest.h>

#include "comm/self_comm.h"
#include "device/program.h"
#include "ops/transposed_weights.h"
#include "support/devices.h"
#include "unit/model/small_model.h"

namespace hctr::test {
namespace {

constexpr int64_t kDlrmSteps = 6;
constexpr SmallOptions kSmallDlrm{.batch = 1100, .dense = 13, .slots = 5, .dim = 32, .learning_rate = 0.1f};

/// Transposed copies of weights are what they are copies of; returns how many there are.
int64_t expect_copies_of_weights(const SmallModel& small, const char* when) {
  int64_t copies = 0;
  for (const LayerIo& io : small.binding.calls)
    for (size_t i = 0; i < io.transposed.size(); ++i) {
      if (!io.transposed[i]) continue;
      ++copies;
      const StreamRef stream = small.runtime.compute_stream();
      const std::vector<float> w = to_host<float>(stream, io.weights[i]),
                               copy = to_host<float>(stream, *io.transposed[i]);
      const auto in = static_cast<size_t>(io.weights[i].dim(0)), out = static_cast<size_t>(io.weights[i].dim(1));
      for (size_t k = 0; k < w.size(); ++k) {
        EXPECT_EQ(copy[k % out * in + k / out], w[k]) << when << ", element " << k;
        if (copy[k % out * in + k / out] != w[k]) return copies;
      }
    }
  return copies;
}

/// The loss of each step.
std::vector<float> losses_of(Device device, const std::string& solver, bool record) {
  const Config config = small_config(kSmallDlrm, R"(
      {"type": "InnerProduct", "bottom": "dense", "top": "first", "fc_param": {"num_output": 136}},
      {"type": "ReLU", "bottom": "first", "top": "first_relu"},
      {"type": "InnerProduct", "bottom": "first_relu", "top": "second", "fc_param": {"num_output": 32}},
      {"type": "ReLU", "bottom": "second", "top": "second_relu"},
      {"type": "Interaction", "bottom": ["second_relu", "vectors"], "top": "pairs"},)",
                                     solver);
  SelfComm comm;
  SmallModel small(kSmallDlrm, config, device, comm);
  const auto train = [&](Recording* recording) {
    small.model.train_step(small.ctx, recording, 0, small.batch, small.binding);
  };
  const bool copies = ops::gains_by_transposed_weights(small.runtime);
  EXPECT_EQ(expect_copies_of_weights(small, "before the first step"), copies ? 2 : 0);
  std::vector<float> losses;
  std::optional<Program> program;
  for (int64_t t = 0; t < kDlrmSteps; ++t) {
    small.set_batch(
        t, [&](int64_t i) { return static_cast<float>((i * 3 + t) % 5 == 0); },
        [&](int64_t i, int64_t d) { return static_cast<float>((i * 7 + d * 3 + t) % 11) / 11 - 0.3f; },
        [&](int64_t i, int64_t s) { return 100 * s + (i * i + t) % 37; });
    small.model.reserve_rows(t);
    small.model.prepare(small.ctx, nullptr, 0, small.batch);
    if (t == 1 && record)  // once everything has its memory
      program.emplace(small.ctx.stream(), true, [&](Recording& recording) { train(&recording); });
    if (program)
      program->run();
    else
      train(nullptr);
    losses.push_back(small.loss());
  }
  expect_copies_of_weights(small, "after the last step");
  return losses;
}

TEST(SharedLookup, OfASmallDlrmComputesTheSameStepsRecordedOrNot) {
  for (const char* solver :
       {"", R"(, "mixed_precision": "bf16")", R"(, "mixed_precision": 1024)", R"(, "enable_tf32_compute": true)"}) {
    SCOPED_TRACE(solver);
    const std::vector<float> on_cpu = losses_of(kCpu, solver, false);
    EXPECT_LT(on_cpu.back(), on_cpu.front());
    for (const Device device : devices()) {
      const std::vector<float> losses = losses_of(device, solver, false);
      EXPECT_EQ(losses, losses_of(device, solver, true)) << to_string(device);
      EXPECT_EQ(losses, losses_of(device, solver, true)) << to_string(device);
      for (size_t t = 0; t < losses.size(); ++t)
        EXPECT_NEAR(losses[t], on_cpu[t], *solver ? 0.02 * on_cpu[t] : 1e-4 * on_cpu[t]) << t;
    }
  }
}

}  // namespace
}  // namespace hctr::test
