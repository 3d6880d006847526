// Clipped gradients, compared with unclipped gradients.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/optimizer/clip.h"
#include "support/devices.h"
#include "support/op_test.h"
#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

const std::string kTwoLayers =
    R"({"type": "InnerProduct", "bottom": "dense", "top": "fc1", "fc_param": {"num_output": 5}},
                               {"type": "InnerProduct", "bottom": "fc1", "top": "fc2", "fc_param": {"num_output": 1}},
                               {"type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"], "top": "loss"})";

/// Returns the gradients that an SGD step with learning rate 0.1 applies.
std::vector<double> applied(const std::string& solver) {
  TinyModel tiny(config_of(kTwoLayers, 1, solver));
  const auto weights = [&] {
    std::vector<double> all;
    for (const NamedTensor& weight : tiny.model.dense_weights())
      for (const float w : to_host<float>(tiny.runtime_stream(), weight.value)) all.push_back(static_cast<double>(w));
    return all;
  };
  const std::vector<double> before = weights();
  tiny.train();
  std::vector<double> gradients = weights();
  for (size_t i = 0; i < before.size(); ++i) gradients[i] = (before[i] - gradients[i]) / 0.1;
  return gradients;
}

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

TEST(Clipping, ANormThatIsTooLargeIsScaledDownAndASmallOneIsLeftAlone) {
  const std::vector<double> plain = applied("");
  const double whole = norm(plain);
  ASSERT_GT(whole, 0.01);
  const std::vector<double> half = applied(cat(", \"clip_gradient_norm\": ", whole / 2));
  EXPECT_NEAR(norm(half), whole / 2, 1e-5 * whole);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(half[i], plain[i] / 2, 1e-5 * whole) << i;
  EXPECT_EQ(applied(cat(", \"clip_gradient_norm\": ", 2 * whole)), plain);
}

TEST(Clipping, TheNormIsThatOfWeightsThatAreTrained) {
  const std::vector<double> plain = applied(R"(, "frozen": ["fc1"])");  // fc1 has 20 weights, fc2 has 6
  const double whole = norm(plain);
  EXPECT_NEAR(norm(applied(cat(", \"frozen\": [\"fc1\"], \"clip_gradient_norm\": ", whole / 2))), whole / 2,
              1e-5 * whole);
}

TEST(Clipping, EachNumberIsCutToTheValue) {
  const std::vector<double> plain = applied("");
  double most = 0;
  for (const double g : plain) most = std::max(most, std::abs(g));
  const std::vector<double> cut = applied(cat(", \"clip_gradient_value\": ", most / 2));
  int below = 0, above = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(cut[i], std::clamp(plain[i], -most / 2, most / 2), 1e-5) << i;
    ++(std::abs(plain[i]) > most / 2 ? above : below);
  }
  EXPECT_GT(below, 0);
  EXPECT_GT(above, 0);
}

TEST(Clipping, ALossScaleDoesNotCount) {
  for (const Device device : devices()) {
    Rig t({device,
           DType::f32,
           DType::f32,
           {{"dense"}},
           1,
           {{"g", {3}, 0, 0}, {"squares", {1}, 0, 0}},
           {.loss_scale = 4}});
    for (size_t i = 0; i < 3; ++i) t.perturb("g", i, 4.0 * static_cast<double>(i));
    t.perturb("squares", 0, 16 * 25);  // the norm is 5, so squares = 5^2 * loss_scale^2
    ops::clip_to_norm(t.ctx, 2.5f, t["squares"], t["g"]);
    t.fetch();
    EXPECT_EQ(t.values("g"), (std::vector<double>{0, 2, 4}));
  }
}

TEST(Clipping, NothingIsCutOfANumberThatIsNone) {
  const ops::GradientScale scale{0.5f, 2};
  EXPECT_EQ(3.0f * scale, 1.5f);
  EXPECT_EQ(8.0f * scale, 2.0f);
  EXPECT_EQ(-8.0f * scale, -2.0f);
  EXPECT_TRUE(std::isnan(NAN * scale));
}

}  // namespace
}  // namespace hctr::test
