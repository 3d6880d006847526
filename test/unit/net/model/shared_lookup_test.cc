// A small DLRM whose bottom layers overlap the embedding lookup. The interaction computes the drelu of a bottom layer,
// and layers read transposed copies of the weights. Recorded and unrecorded steps give equal bits in every run, and
// approximately the CPU's results.
#include <gtest/gtest.h>

#include "core/comm/self_comm.h"
#include "core/device/program.h"
#include "ops/gemm/transposed_weights.h"
#include "support/devices.h"
#include "unit/net/model/small_model.h"

namespace hctr::test {
namespace {

constexpr int64_t kDlrmSteps = 6;
constexpr SmallOptions kSmallDlrm{.batch = 1100, .dense = 13, .slots = 5, .dim = 32, .learning_rate = 0.1f};

/// Returns the weights of layers that have transposed copies. `of_copies`: returns the copies instead, transposed back.
std::vector<std::vector<float>> weights_with_copies(const SmallModel& small, bool of_copies = false) {
  std::vector<std::vector<float>> all;
  for (const LayerIo& io : small.binding.calls)
    for (size_t i = 0; i < io.transposed.size(); ++i) {
      if (!io.transposed[i]) continue;
      const StreamRef stream = small.runtime.compute_stream();
      std::vector<float>& w = all.emplace_back(to_host<float>(stream, io.weights[i]));
      if (!of_copies) continue;
      const std::vector<float> copy = to_host<float>(stream, *io.transposed[i]);
      const auto in = static_cast<size_t>(io.weights[i].dim(0)), out = static_cast<size_t>(io.weights[i].dim(1));
      for (size_t k = 0; k < w.size(); ++k) w[k] = copy[k % out * in + k / out];
    }
  return all;
}

/// Returns the loss of each step.
std::vector<float> losses_of(Device device, const std::string& solver, bool record) {
  const Config config = small_config(kSmallDlrm, R"(
      {"type": "InnerProduct", "bottom": "dense", "top": "first", "fc_param": {"num_output": 136}},
      {"type": "ReLU", "bottom": "first", "top": "first_relu"},
      {"type": "InnerProduct", "bottom": "first_relu", "top": "second", "fc_param": {"num_output": 32}},
      {"type": "ReLU", "bottom": "second", "top": "second_relu"},
      {"type": "Interaction", "bottom": ["second_relu", "vectors"], "top": "products"},
      {"type": "InnerProduct", "bottom": "products", "top": "third", "fc_param": {"num_output": 72}},
      {"type": "ReLU", "bottom": "third", "top": "pairs"},)",
                                     solver);
  SelfComm comm;
  SmallModel small(kSmallDlrm, config, device, comm);
  const auto train = [&](Recording* recording) {
    small.model.train_step(small.ctx, recording, 0, small.batch, small.binding);
  };
  const bool copies = ops::gains_by_transposed_weights(small.runtime);
  EXPECT_EQ(weights_with_copies(small).size(), copies ? 3u : 0u);
  std::vector<float> losses;
  std::optional<Program> program;
  for (int64_t t = 0; t < kDlrmSteps; ++t) {
    small.set_batch(
        t, [&](int64_t i) { return static_cast<float>((i * 3 + t) % 5 == 0); },
        [&](int64_t i, int64_t d) { return static_cast<float>((i * 7 + d * 3 + t) % 11) / 11 - 0.3f; },
        [&](int64_t i, int64_t s) { return 100 * s + (i * i + t) % 37; });
    small.model.reserve_rows(t);
    small.model.prepare(small.ctx, nullptr, 0, small.batch);
    if (t == 1 && record)  // starts recording when all memory is allocated
      program.emplace(small.ctx.stream(), true, [&](Recording& recording) { train(&recording); });
    const auto weights = weights_with_copies(small);
    if (program)
      program->run();
    else
      train(nullptr);
    losses.push_back(small.loss());
    EXPECT_TRUE(weights_with_copies(small, true) == weights) << "copies in step " << t;
    if (copies) {
      EXPECT_FALSE(weights_with_copies(small) == weights) << "step " << t << " updates none";
    }
  }
  small.model.evaluate(small.ctx, small.batch, small.model.bind(Phase::evaluate, small.batch));
  EXPECT_TRUE(weights_with_copies(small, true) == weights_with_copies(small)) << "copies in the evaluation";
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
