// A layer after an embedding checks the embedding gradient for overflow. A step is skipped even if only this gradient
// overflows.
#include <gtest/gtest.h>

#include <cmath>

#include "core/comm/self_comm.h"
#include "support/devices.h"
#include "unit/net/model/small_model.h"

namespace hctr::test {
namespace {

/// Returns the number of skipped steps after one step in which all dense values are `dense_value`.
int64_t skipped_with(
    Device device, float dense_value,
    const char* layers = R"({"type": "Interaction", "bottom": ["dense", "vectors"], "top": "pairs"},)") {
  const SmallOptions options;
  const Config config = small_config(options, layers, R"(, "mixed_precision": 1024)");
  SelfComm comm;
  SmallModel small(options, config, device, comm);
  small.set_batch(
      0, [](int64_t i) { return static_cast<float>(i % 2); }, [&](int64_t, int64_t) { return dense_value; },
      [&](int64_t i, int64_t slot) { return slot * options.batch + i; });
  small.model.reserve_rows(0);
  small.model.prepare(small.ctx, nullptr, 0, small.batch);
  small.model.train_step(small.ctx, nullptr, 0, small.batch, small.binding);
  return small.model.loss_scale()->skipped;
}

TEST(OverflowSearch, OfTheLayerBehindAnEmbeddingSkipsTheStep) {
  for (const Device device : devices()) {
    EXPECT_EQ(skipped_with(device, 1), 0) << to_string(device);
    // The gradient of a logit is at most 128. The gradient of a vector is multiplied by a weight and the dense value,
    // and overflows. Wgrads are f32.
    EXPECT_EQ(skipped_with(device, 20000), 1) << to_string(device);
  }
}

/// A GPU that computes wgrads last checks the operands of the wgrad GEMMs for overflow instead of the wgrads. In each
/// case some operands are infinite in f16: dense values, their sums in two layers, or gradients.
TEST(OverflowSearch, OfOperandsSkipsTheStepsThatASearchOfGradientsSkips) {
  const char* const like_dlrm = R"(
    {"type": "MLP", "bottom": "dense", "top": "bottom", "mlp_param": {"num_outputs": [64, 8]}},
    {"type": "Interaction", "bottom": ["bottom", "vectors"], "top": "interaction"},
    {"type": "MLP", "bottom": "interaction", "top": "pairs", "mlp_param": {"num_outputs": [32, 64, 16]}},)";
  const char* const of_all_vectors = R"(
    {"type": "Reshape", "bottom": "vectors", "top": "flat", "leading_dim": 16},
    {"type": "Concat", "bottom": ["dense", "flat"], "top": "both"},
    {"type": "MLP", "bottom": "both", "top": "pairs", "mlp_param": {"num_outputs": [64, 16]}},)";
  for (const char* const layers : {like_dlrm, of_all_vectors}) {
    int64_t all = 0;
    constexpr int kSizes = 18;
    for (int i = 0; i < kSizes; ++i) {
      const float value = std::ldexp(1.0f, i);  // 2^16 is infinite in f16
      const int64_t skipped = skipped_with(Device{}, value, layers);
      for (const Device device : devices()) EXPECT_EQ(skipped_with(device, value, layers), skipped) << value << layers;
      all += skipped;
    }
    EXPECT_GT(all, 1) << layers;
    EXPECT_LT(all, kSizes) << layers;
  }
}

}  // namespace
}  // namespace hctr::test
