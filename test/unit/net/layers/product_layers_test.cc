// Layers that combine, reduce and weight elements.
#include "support/layer_run.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

TEST(DotProductLayer, MultipliesAnyNumberOfTensors) {
  check_layer({R"({"type": "DotProduct"})", {{5, 7}, {5, 7}}});
  check_layer({R"({"type": "DotProduct"})", {{3, 2, 5}, {3, 2, 5}, {3, 2, 5}, {3, 2, 5}}});
  check_layer({R"({"type": "ElementwiseMultiply"})", {{4, 8}, {4, 8}, {4, 8}}});
}

TEST(DotProductLayer, HasTheProductRuleWhereFactorsAreZero) {
  const LayerRun run({R"({"type": "DotProduct"})", {{2, 3}, {2, 3}}, 0, 0}, {});
  EXPECT_EQ(run.d_in[0], std::vector<double>(6, 0));
  check_layer({R"({"type": "DotProduct"})", {{2, 3}, {2, 3}}, 0, 0});
}

TEST(DotProductLayer, NeedsOneShape) {
  EXPECT_EQ(complaint_of(R"({"type": "DotProduct"})", {{5, 7}, {5, 8}}),
            "bottom/1: DotProduct takes tensors of equal shape: the first has [5,7], this one [5,8]");
}

TEST(SubLayer, Subtracts) {
  check_layer({R"({"type": "Sub"})", {{5, 7}, {5, 7}}});
  const LayerRun run({R"({"type": "Sub"})", {{1, 2}, {1, 2}}}, {});
  EXPECT_EQ(run.out[0][1], run.in[0][1] - run.in[1][1]);
  EXPECT_EQ(complaint_of(R"({"type": "Sub"})", {{5, 7}, {7, 5}}),
            "bottom/1: Sub takes tensors of equal shape: the first has [5,7], this one [7,5]");
}

TEST(ReduceLayers, KeepTheAxisWithSizeOne) {
  EXPECT_EQ(spec_text(R"({"type": "ReduceSum", "axis": 0})", {{6, 5}}), "[1,5]");
  EXPECT_EQ(spec_text(R"({"type": "ReduceSum", "axis": 1})", {{6, 5}}), "[6,1]");
  EXPECT_EQ(spec_text(R"({"type": "ReduceMean", "axis": 1})", {{6, 5, 4}}), "[6,1,4]");
  EXPECT_EQ(spec_text(R"({"type": "ReduceMean", "axis": 2})", {{6, 5, 4}}), "[6,5,1]");
}

TEST(ReduceLayers, SumAndAverageAlongEveryAxis) {
  for (const char* type : {"ReduceSum", "ReduceMean"}) {
    for (const int axis : {0, 1}) check_layer({cat(R"({"type": ")", type, R"(", "axis": )", axis, "}"), {{6, 5}}});
    for (const int axis : {0, 1, 2})
      check_layer({cat(R"({"type": ")", type, R"(", "axis": )", axis, "}"), {{4, 3, 5}}});
  }
  const LayerRun run({R"({"type": "ReduceMean", "axis": 1})", {{1, 2}}}, {});
  EXPECT_NEAR(run.out[0][0], (run.in[0][0] + run.in[0][1]) / 2, 1e-12);
}

TEST(ReduceLayers, SayWhatDoesNotFit) {
  EXPECT_EQ(complaint_of(R"({"type": "ReduceSum"})", {{6, 5}}),
            ": ReduceSum needs \"axis\": the axis to reduce, which keeps size 1; 0 is the batch");
  EXPECT_EQ(complaint_of(R"({"type": "ReduceSum", "axis": 2})", {{6, 5}}),
            "axis: axis 2 of a tensor of shape [6,5]: its axes are 0 to 1");
  EXPECT_EQ(complaint_of(R"({"type": "ReduceSum", "axis": -1})", {{6, 5}}),
            "/axis: expected an integer, at least 0 and at most 2, found the integer -1");
  EXPECT_EQ(complaint_of(R"({"type": "ReduceMean", "axis": 0})", {{6, 5, 2, 2}}),
            "bottom: ReduceMean takes a tensor of 2 or 3 dimensions, found shape [6,5,2,2]");
}

TEST(WeightMultiplyLayer, HasAVectorForEachColumn) {
  EXPECT_EQ(spec_text(R"({"type": "Multiply", "weight_dims": [3, 4]})", {{6, 3}}), "[6,12] | weights [3,4]");
  check_layer({R"({"type": "WeightMultiply", "weight_dims": [3, 4]})", {{6, 3}}});
  check_layer({R"({"type": "Multiply", "weight_dims": [5, 1]})", {{40, 5}}});
}

TEST(WeightMultiplyLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(complaint_of(R"({"type": "WeightMultiply", "weight_dims": [3, 4]})", {{6, 5}}),
            "weight_dims/0: 3 vectors for a tensor of shape [6,5]: expected one vector for each column, 5");
  EXPECT_EQ(complaint_of(R"({"type": "WeightMultiply", "weight_dims": [3]})", {{6, 3}}),
            "/weight_dims: is [slots, dim], two numbers; found 1");
  EXPECT_EQ(complaint_of(R"({"type": "Multiply", "weight_dims": [3, 4]})", {{6, 3, 2}}),
            "bottom: WeightMultiply takes a tensor of 2 dimensions, found shape [6,3,2]; add a Reshape before it");
}

TEST(ActivationLayers, HaveTheirFunctions) {
  for (const char* section :
       {R"({"type": "ELU", "elu_param": {"alpha": 0.7}})", R"({"type": "GELU"})", R"({"type": "LeakyReLU"})",
        R"({"type": "LeakyReLU", "leaky_relu_param": {"alpha": 0.2}})", R"({"type": "ReLU"})", R"({"type": "Sigmoid"})",
        R"({"type": "SiLU"})", R"({"type": "Tanh"})"}) {
    SCOPED_TRACE(section);
    check_layer({section, {{5, 9}}, -3, 3});
    check_layer({section, {{2, 3, 4}}, -3, 3});
  }
  EXPECT_NEAR(LayerRun({R"({"type": "LeakyReLU"})", {{1, 1}}, -1, -1}, {}).out[0][0], -0.01, 1e-9);
  EXPECT_EQ(complaint_of(R"({"type": "ELU"})", {{5, 7}}), ": ELU needs the object \"elu_param\"");
}

TEST(PReLULayer, HasASlopeForEachFeatureOrOne) {
  EXPECT_EQ(spec_text(R"({"type": "PReLU"})", {{6, 5}}), "[6,5] | alpha [1,5]");
  EXPECT_EQ(spec_text(R"({"type": "PReLU"})", {{6, 5, 3}}), "[6,5,3] | alpha [1,3]");
  EXPECT_EQ(spec_text(R"({"type": "PReLU", "prelu_param": {"shared": true}})", {{6, 5}}), "[6,5] | alpha [1,1]");
  check_layer({R"({"type": "PReLU"})", {{6, 5}}});
  check_layer({R"({"type": "PReLU", "prelu_param": {"shared": true}})", {{4, 2, 3}}});
}

TEST(FmOrder2Layer, TakesVectorsOfOneLength) {
  EXPECT_EQ(spec_text(R"({"type": "FmOrder2", "out_dim": 4})", {{6, 12}}), "[6,4]");
  check_layer({R"({"type": "FmOrder2", "out_dim": 4})", {{6, 12}}});
  check_layer({R"({"type": "FmOrder2", "out_dim": 5})", {{3, 4, 5}}});
  EXPECT_EQ(complaint_of(R"({"type": "FmOrder2", "out_dim": 5})", {{6, 12}}),
            "out_dim: rows of 12 elements cannot be divided into vectors of 5: out_dim must divide the width of a "
            "tensor of shape [6,12]");
}

TEST(InteractionLayer, CrossesAllVectors) {
  EXPECT_EQ(spec_text(R"({"type": "Interaction"})", {{6, 8}, {6, 26, 8}}), "[6,360]");
  check_layer({R"({"type": "Interaction"})", {{4, 6}, {4, 3, 6}}});
  check_layer({R"({"type": "Interaction"})", {{2, 5}, {2, 40, 5}}});
}

TEST(InteractionLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(complaint_of(R"({"type": "Interaction"})", {{6, 2, 4}, {6, 26, 8}}),
            "bottom/0: Interaction reads a matrix [samples, dim] first, from the bottom MLP, found shape [6,2,4]");
  EXPECT_EQ(complaint_of(R"({"type": "Interaction"})", {{6, 8}, {6, 8}}),
            "bottom/1: the second input of Interaction must be an embedding [samples, slots, dim], found shape [6,8]");
  EXPECT_EQ(complaint_of(R"({"type": "Interaction"})", {{6, 16}, {6, 26, 8}}),
            "bottom/1: Interaction takes vectors of equal length for the same samples: the first tensor has shape "
            "[6,16], this one [6,26,8]; make the last InnerProduct 8 wide or the embedding's vectors 16 long");
}

}  // namespace
}  // namespace hctr::test
