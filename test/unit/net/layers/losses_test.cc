#include <gtest/gtest.h>

#include "net/layers/layer.h"
#include "unit/net/layers/layer_spec.h"

namespace hctr::test {
namespace {

const std::string kCross = R"({"type": "CrossEntropyLoss"})";
const std::string kMulti = R"({"type": "MultiCrossEntropyLoss", "target_weight": [0.2, 0.5, 1]})";

TEST(CrossEntropyLossLayer, PredictsOneProbability) {
  const LayerSpec spec = spec_of(kCross, {{8, 2}, {8, 1}}, DType::f16);
  EXPECT_EQ(spec.outputs[0], TensorSpec(DType::f32, {1}));
  EXPECT_EQ(spec.outputs[1], TensorSpec(DType::f32, {8, 1}));
}

TEST(CrossEntropyLossLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(spec_error(kCross, {{8, 1}, {8, 1}}),
            "bottom/0: CrossEntropyLoss takes logits of two columns, one for each class, found shape [8,1]");
  EXPECT_EQ(spec_error(kCross, {{8, 2}, {8, 2}}),
            "bottom/1: CrossEntropyLoss takes labels of one column, 0 or 1, for 8 rows, found shape [8,2]");
  EXPECT_EQ(spec_error(kCross, {{8, 2}, {4, 1}}),
            "bottom/1: CrossEntropyLoss takes labels of one column, 0 or 1, for 8 rows, found shape [4,1]");
}

TEST(MultiCrossEntropyLossLayer, PredictsEachLabel) {
  EXPECT_EQ(spec_of(kMulti, {{8, 3}, {8, 3}}).outputs[1], TensorSpec(DType::f32, {8, 3}));
}

TEST(MultiCrossEntropyLossLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(
      spec_error(kMulti, {{8, 3}, {8, 2}}),
      "bottom/1: MultiCrossEntropyLoss takes a label for every logit: the logits have shape [8,3], the labels [8,2]");
  EXPECT_EQ(spec_error(kMulti, {{8, 2}, {8, 2}}),
            "target_weight: has 3 numbers for 2 labels; expected one number "
            "for each label");
  EXPECT_EQ(spec_error(kMulti, {{8, 3, 1}, {8, 3, 1}}),
            "bottom/0: MultiCrossEntropyLoss takes a tensor of 2 dimensions, found shape [8,3,1]; add a Reshape "
            "before it");
  EXPECT_EQ(complaints(R"({"type": "MultiCrossEntropyLoss"})"),
            "/layers/1: MultiCrossEntropyLoss needs \"target_weight\": one weight for each column of the labels y, in "
            "the order of the columns\n");
}

TEST(LossLayers, HaveAPenaltyAndAWeight) {
  for (const std::string type : {"BinaryCrossEntropyLoss", "CrossEntropyLoss"})
    for (const std::string spelling : {"loss_weight", "weight"}) {
      Problems problems;
      const auto layer = made(
          R"({"type": ")" + type + R"(", "regularizer": "L2", "lambda": 0.5, ")" + spelling + R"(": 0.25})", problems);
      EXPECT_FALSE(problems.any_error());
      const auto& loss = dynamic_cast<const LossLayer&>(*layer);
      EXPECT_EQ(loss.regularizer().kind, LossLayer::Regularizer::Kind::l2);
      EXPECT_EQ(loss.regularizer().lambda, 0.5);
      EXPECT_EQ(loss.weight(), 0.25);
    }
}

TEST(LossLayers, ReportFieldsOfThePenaltyThatDoNotFit) {
  EXPECT_EQ(complaints(R"({"type": "CrossEntropyLoss", "lambda": 1})"),
            "/layers/1/lambda: lambda has no effect without \"regularizer\"\n");
  EXPECT_EQ(complaints(R"({"type": "CrossEntropyLoss", "regularizer": "L1"})"),
            "/layers/1: \"lambda\" is not given; 1e-05 is used\n");
  EXPECT_EQ(complaints(R"({"type": "CrossEntropyLoss", "loss_weight": 0})"),
            "/layers/1/loss_weight: expected a number, more than 0, found the integer 0\n");
}

}  // namespace
}  // namespace hctr::test
