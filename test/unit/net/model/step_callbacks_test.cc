// Callbacks that a step makes while it is queued.
#include <gtest/gtest.h>

#include <string>

#include "core/comm/self_comm.h"
#include "support/devices.h"
#include "unit/net/model/small_model.h"

namespace hctr::test {
namespace {

constexpr const char* kLikeDlrm = R"(
    {"type": "InnerProduct", "bottom": "dense", "top": "fc", "fc_param": {"num_output": 8}},
    {"type": "ReLU", "bottom": "fc", "top": "relu"},
    {"type": "Interaction", "bottom": ["relu", "vectors"], "top": "interaction"},
    {"type": "MLP", "bottom": "interaction", "top": "pairs", "mlp_param": {"num_outputs": [32, 16]}},)";
constexpr const char* kVectorsFirst = R"({"type": "Interaction", "bottom": ["dense", "vectors"], "top": "pairs"},)";

/// Counts how often one step of a model with these layers reports that the embedding gradients are complete.
int told_by(Device device, const char* layers, const char* solver) {
  const SmallOptions options;
  const Config config = small_config(options, layers, solver);
  SelfComm comm;
  SmallModel small(options, config, device, comm);
  small.set_batch(
      0, [](int64_t i) { return static_cast<float>(i % 2); }, [](int64_t, int64_t) { return 1.0f; },
      [&](int64_t i, int64_t slot) { return slot * options.batch + i; });
  small.model.reserve_rows(0);
  small.model.prepare(small.ctx, nullptr, 0, small.batch);
  int times = 0, losses = 0;
  const auto prefetch_point = [&](Context&) {
    EXPECT_EQ(losses, 1) << "the loss comes first";
    ++times;
  };
  small.model.train_step(small.ctx, nullptr, 0, small.batch, small.binding,
                         {.loss_known = [&](Context&) { ++losses; }, .prefetch_point = prefetch_point});
  EXPECT_EQ(losses, 1);
  return times;
}

/// The prefetch point has two conditions. Wgrad GEMMs must be deferred to the end of the backward pass, which happens
/// only on Hopper. The other GEMMs must use tensor cores, so the dtype is not fp32.
TEST(StepCallbacks, GradientsOfEmbeddingsAreToldOnceWhereFirstLayersReadNone) {
  for (const Device device : devices())
    for (const char* const solver : {"", R"(, "mixed_precision": "bf16")", R"(, "mixed_precision": 1024)"}) {
      const bool hopper = device.is_cuda() && describe(device).find("compute capability 9.0") != std::string::npos;
      EXPECT_EQ(told_by(device, kLikeDlrm, solver), hopper && *solver ? 1 : 0) << to_string(device) << solver;
      EXPECT_EQ(told_by(device, kVectorsFirst, solver), 0) << to_string(device) << solver;
    }
}

}  // namespace
}  // namespace hctr::test
