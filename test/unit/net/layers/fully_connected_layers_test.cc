// The layers InnerProduct, FusedInnerProduct, MLP and MultiCross.
#include "support/layer_run.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

TEST(InnerProductLayer, IsAMatrixAndABias) {
  EXPECT_EQ(spec_text(R"({"type": "InnerProduct", "fc_param": {"num_output": 3}})", {{4, 6}}),
            "[4,3] | weights [6,3] bias [3]");
  check_layer({R"({"type": "InnerProduct", "fc_param": {"num_output": 3}})", {{4, 6}}});
  EXPECT_EQ(complaint_of(R"({"type": "InnerProduct", "fc_param": {"num_output": 3}})", {{4, 6, 2}}),
            "bottom/0: InnerProduct takes a tensor of 2 dimensions, found shape [4,6,2]; add a Reshape before it");
  EXPECT_EQ(complaint_of(R"({"type": "InnerProduct"})", {{4, 6}}), ": InnerProduct needs the object \"fc_param\"");
}

TEST(FusedInnerProductLayer, EndsInReluByDefault) {
  EXPECT_EQ(spec_text(R"({"type": "FusedInnerProduct", "fc_param": {"num_output": 3}})", {{4, 6}}),
            "[4,3] | weights [6,3] bias [3]");
  check_layer({R"({"type": "FusedInnerProduct", "fc_param": {"num_output": 3}})", {{4, 6}}});
  check_layer({R"({"type": "FusedInnerProduct", "activation": "None", "fc_param": {"num_output": 3}})", {{4, 6}}});
  const LayerRun relu({R"({"type": "FusedInnerProduct", "fc_param": {"num_output": 9}})", {{4, 6}}}, {});
  const LayerRun none(
      {R"({"type": "FusedInnerProduct", "activation": "None", "fc_param": {"num_output": 9}})", {{4, 6}}}, {});
  for (size_t i = 0; i < relu.out[0].size(); ++i) EXPECT_EQ(relu.out[0][i], std::max(0.0, none.out[0][i]));
}

TEST(FusedInnerProductLayer, AcceptsTheEmptyTensorsOfAChain) {
  const char* body = R"({"type": "FusedInnerProduct", "position": "Body", "fc_param": {"num_output": 3}})";
  EXPECT_EQ(spec_text(body, {{4, 6}, {0, 1}, {0, 1}, {0, 1}}), "[4,3] [0,1] [0,1] [0,1] | weights [6,3] bias [3]");
  check_layer({body, {{4, 6}, {0, 1}, {0, 1}, {0, 1}}});
  EXPECT_EQ(spec_text(R"({"type": "FusedInnerProduct", "position": "Tail", "fc_param": {"num_output": 3}})",
                      {{4, 6}, {0, 1}, {0, 1}, {0, 1}}),
            "[4,3] | weights [6,3] bias [3]");
  EXPECT_EQ(complaint_of(body, {{4, 6}, {4, 6}}),
            "bottom/1: FusedInnerProduct reads only its first bottom; further bottoms must be the empty tops of a "
            "FusedInnerProduct, found shape [4,6]");
  EXPECT_EQ(
      complaint_of(R"({"type": "FusedInnerProduct", "activation": "Relo", "fc_param": {"num_output": 3}})", {{4, 6}})
          .substr(0, 30),
      "/activation: expected \"None\", ");
}

TEST(MlpLayer, IsAStack) {
  EXPECT_EQ(spec_text(R"({"type": "MLP", "mlp_param": {"num_outputs": [5, 2]}})", {{4, 6}}),
            "[4,2] | weights_0 [6,5] bias_0 [5] weights_1 [5,2] bias_1 [2]");
  EXPECT_EQ(spec_text(R"({"type": "MLP", "mlp_param": {"num_outputs": [5, 2], "use_bias": false}})", {{4, 6}}),
            "[4,2] | weights_0 [6,5] weights_1 [5,2]");
  check_layer({R"({"type": "MLP", "mlp_param": {"num_outputs": [5, 7, 2]}})", {{4, 6}}});
  check_layer(
      {R"({"type": "MLP", "mlp_param": {"num_outputs": [5, 2], "activation": "None", "use_bias": false}})", {{4, 6}}});
  check_layer({R"({"type": "MLP", "mlp_param": {"num_outputs": [5, 7, 4], "activations": ["GELU", "Relu", "None"]}})",
               {{4, 6}}});
  check_layer(
      {R"({"type": "MLP", "mlp_param": {"num_outputs": [5, 7, 4], "activations": ["Tanh", "SiLU", "Sigmoid"]}})",
       {{4, 6}}});
}

TEST(MlpLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(complaint_of(R"({"type": "MLP", "mlp_param": {"num_outputs": []}})", {{4, 6}}),
            "/mlp_param/num_outputs: names no stage; expected the width of at least one stage");
  EXPECT_EQ(
      complaint_of(R"({"type": "MLP", "mlp_param": {"num_outputs": [4], "activations": ["Relu", "None"]}})", {{4, 6}}),
      "/mlp_param/activations: has 2 entries for 1 stages; expected one activation for each stage, or set "
      "\"activation\" for all stages");
  EXPECT_EQ(complaint_of(R"({"type": "MLP", "mlp_param": {"num_outputs": [4], "activations": ["Swish"]}})", {{4, 6}}),
            "/mlp_param/activations/0: expected \"None\", \"Relu\", \"ReLU\", \"Sigmoid\", \"Tanh\", \"GELU\" or "
            "\"SiLU\", found \"Swish\"");
}

TEST(MultiCrossLayer, HasAVectorAndABiasPerLayer) {
  EXPECT_EQ(spec_text(R"({"type": "MultiCross", "mc_param": {"num_layers": 2}})", {{4, 6}}),
            "[4,6] | weights_0 [1,6] bias_0 [1,6] weights_1 [1,6] bias_1 [1,6]");
  check_layer({R"({"type": "MultiCross", "mc_param": {"num_layers": 3}})", {{5, 6}}});
}

TEST(MultiCrossLayer, HasAMatrixOrTwoOfLowRank) {
  EXPECT_EQ(spec_text(R"({"type": "MultiCross", "mc_param": {"num_layers": 1, "full_matrix": true}})", {{4, 6}}),
            "[4,6] | weights_0 [6,6] bias_0 [6]");
  EXPECT_EQ(spec_text(R"({"type": "MultiCross", "mc_param": {"num_layers": 1, "projection_dim": 2}})", {{4, 6}}),
            "[4,6] | u_0 [6,2] v_0 [2,6] bias_0 [6]");
  check_layer({R"({"type": "MultiCross", "mc_param": {"num_layers": 3, "full_matrix": true}})", {{5, 6}}});
  check_layer({R"({"type": "MultiCross", "mc_param": {"num_layers": 3, "projection_dim": 2}})", {{5, 6}}});
  check_layer({R"({"type": "MultiCross", "mc_param": {"num_layers": 1, "projection_dim": 2}})", {{5, 6}}});
  // Rows of a multiple of 16 bytes use the kernels that fuse a GEMM with its gate.
  check_layer({R"({"type": "MultiCross", "mc_param": {"num_layers": 3, "projection_dim": 8}})", {{5, 24}}});
  check_layer({R"({"type": "MultiCross", "mc_param": {"num_layers": 3, "full_matrix": true}})", {{5, 16}}});
  check_layer({R"({"type": "MultiCross", "mc_param": {"num_layers": 7, "projection_dim": 1}})", {{1, 3}}});
  check_layer({R"({"type": "MultiCross", "mc_param": {"num_layers": 2, "full_matrix": true}})", {{9, 8}}});
}

TEST(MultiCrossLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(complaint_of(R"({"type": "MultiCross", "mc_param": {"num_layers": 0}})", {{4, 6}}),
            "/mc_param/num_layers: expected an integer, at least 1 and at most 64, found the integer 0");
  EXPECT_EQ(
      complaint_of(R"({"type": "MultiCross", "mc_param": {"num_layers": 1, "projection_dim": 2, "full_matrix": true}})",
                   {{4, 6}}),
      "/mc_param/full_matrix: \"projection_dim\" and a full matrix exclude each other; remove one of the two");
  EXPECT_EQ(complaint_of(R"({"type": "MultiCross", "mc_param": {"num_layers": 1}})", {{4, 6, 2}}),
            "bottom: MultiCross takes a tensor of 2 dimensions, found shape [4,6,2]; add a Reshape before it");
}

}  // namespace
}  // namespace hctr::test
