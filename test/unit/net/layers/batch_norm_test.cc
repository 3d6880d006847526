#include "unit/net/layers/layer_spec.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

const std::string kBatchNorm = R"({"type": "BatchNorm", "bn_param": {"factor": 0.1, "eps": 1e-5}})";

TEST(BatchNormLayer, GammaAndBetaStartAtOneAndZeroAndAreNotPenalised) {
  const LayerSpec spec = spec_of(kBatchNorm, {{64, 7}});
  EXPECT_EQ(spec.outputs[0], TensorSpec(DType::f32, {64, 7}));
  ASSERT_EQ(spec.weights.size(), 2u);
  EXPECT_EQ(spec.weights[0].name, "gamma");
  EXPECT_EQ(spec.weights[1].name, "beta");
  EXPECT_EQ(spec.weights[0].start.scale, 1);
  EXPECT_EQ(spec.weights[1].start.scale, 0);
  for (const WeightSpec& weight : spec.weights) {
    EXPECT_EQ(weight.shape, (Shape{7}));
    EXPECT_FALSE(weight.penalised);
  }
}

TEST(BatchNormLayer, CarriesMeanVarianceAndTheirWeight) {
  const LayerSpec spec = spec_of(kBatchNorm, {{64, 7}}, DType::f16);
  ASSERT_EQ(spec.state.size(), 3u);
  EXPECT_EQ(spec.state[0].name, "mean");
  EXPECT_EQ(spec.state[1].name, "var");
  EXPECT_EQ(spec.state[1].shape, (Shape{7}));
  EXPECT_EQ(spec.state[1].start, 0);
  EXPECT_EQ(spec.state[2].when_absent, 1.0f);
  EXPECT_EQ(spec.outputs[0].dtype, DType::f16);
}

TEST(BatchNormLayer, GammaMayStartAtZero) {
  const LayerSpec spec = spec_of(
      R"({"type": "BatchNorm", "bn_param": {"factor": 1, "eps": 1e-5, "gamma_init": "Zero", "beta_init": "Zero"}})",
      {{4, 2}});
  EXPECT_EQ(spec.weights[0].start.scale, 0);
  EXPECT_EQ(spec.weights[1].start.scale, 0);
}

TEST(BatchNormLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(spec_error(kBatchNorm, {{4, 3, 2}}),
            "bottom: BatchNorm takes a tensor of 2 dimensions, found shape [4,3,2]; add a Reshape before it");
  EXPECT_EQ(complaints(R"({"type": "BatchNorm"})"), "/layers/1: BatchNorm needs the object \"bn_param\"\n");
  EXPECT_EQ(complaints(R"({"type": "BatchNorm", "bn_param": {"factor": 0, "eps": 1e-5}})"),
            "/layers/1/bn_param/factor: expected a number, more than 0 and at most 1, found the integer 0\n");
  EXPECT_EQ(complaints(R"({"type": "BatchNorm", "bn_param": {"factor": 0.1, "eps": 1e-5, "gamma_init": "Uniform"}})"),
            "/layers/1/bn_param/gamma_init: BatchNorm supports only Zero; gamma starts at 1\n");
}

}  // namespace
}  // namespace hctr::test
