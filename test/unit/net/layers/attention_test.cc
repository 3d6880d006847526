// Shape rules for the layers of sequence models.
#include "unit/net/layers/layer_spec.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

const std::string kAttention = R"({"type": "MultiHeadAttention", "num_attention_heads": 4})";
const std::string kMask = R"({"type": "SequenceMask", "max_sequence_len_from": 5, "max_sequence_len_to": 7})";

TEST(MultiHeadAttentionLayer, GivesAMeanOfValuesForEachQuery) {
  EXPECT_EQ(spec_of(kAttention, {{2, 5, 8}, {2, 7, 8}, {2, 7, 12}}).outputs[0].shape, (Shape{2, 5, 12}));
  EXPECT_EQ(spec_of(kAttention, {{2, 5, 8}, {2, 7, 8}, {2, 7, 8}, {2, 1, 5, 7}}).scratch[0].shape, (Shape{2, 4, 5, 7}));
  EXPECT_NE(
      complaints(R"({"type": "MultiHeadAttention", "transpose_b": true})").find("the program always transposes keys"),
      std::string::npos);
}

TEST(MultiHeadAttentionLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(spec_error(kAttention, {{2, 8}, {2, 7, 8}, {2, 7, 8}}),
            "bottom/0: MultiHeadAttention takes a tensor of 3 dimensions, found shape [2,8]");
  EXPECT_EQ(spec_error(kAttention, {{2, 5, 8}, {2, 7, 8}, {2, 7, 10}}),
            "num_attention_heads: the 10 columns of bottom 2 cannot be divided into 4 heads");
  EXPECT_EQ(spec_error(kAttention, {{2, 5, 8}, {3, 7, 8}, {3, 7, 8}}),
            "bottom/1: MultiHeadAttention takes queries, keys and values of one batch: the queries have 2 samples, "
            "this bottom has 3");
  EXPECT_EQ(
      spec_error(kAttention, {{2, 5, 8}, {2, 7, 12}, {2, 7, 8}}),
      "bottom/1: the queries have 8 columns, the keys 12; expected equal last dimensions, because queries and keys "
      "are multiplied");
  EXPECT_EQ(spec_error(kAttention, {{2, 5, 8}, {2, 7, 8}, {2, 6, 8}}),
            "bottom/2: there are 7 keys, but 6 values; expected one value for each key");
  EXPECT_EQ(spec_error(kAttention, {{2, 5, 8}, {2, 7, 8}, {2, 7, 8}, {2, 1, 7, 5}}),
            "bottom/3: the mask has shape [2,1,7,5]; it must be [2,1,5,7], [2,1,1,7] or [2,4,5,7]");
  EXPECT_EQ(spec_of(kAttention, {{2, 5, 8}, {2, 7, 8}, {2, 7, 8}, {2, 1, 1, 7}}).outputs[0].shape, (Shape{2, 5, 8}));
}

TEST(SequenceMaskLayer, TakesLengthsOnceOrTwice) {
  EXPECT_EQ(spec_of(kMask, {{3, 1}, {3, 1}}).outputs[0].shape, (Shape{3, 1, 5, 7}));
  EXPECT_EQ(spec_of(R"({"type": "SequenceMask", "max_sequence_len_from": 5})", {{3, 1}}).outputs[0].shape,
            (Shape{3, 1, 5, 5}));
  EXPECT_EQ(spec_error(kMask, {{3, 1}, {3, 2}}),
            "bottom/1: each bottom of SequenceMask needs one column, and the same number of rows as the first: the "
            "first has shape [3,1], this "
            "one [3,2]");
}

TEST(SoftmaxLayer, TakesAMaskThatFits) {
  const std::string section = R"({"type": "Softmax"})";
  EXPECT_EQ(spec_of(section, {{2, 4, 5, 7}, {2, 1, 5, 7}}).outputs[0].shape, (Shape{2, 4, 5, 7}));
  EXPECT_EQ(spec_error(section, {{2, 5}, {2, 1}}),
            "bottom/1: the mask has shape [2,1], the scores [2,5]: the mask of Softmax has the shape of the scores, "
            "[b, ..., n], or [b, 1, n] for all rows of a sample");
  EXPECT_EQ(spec_of(section, {{2, 5}, {2, 1, 1, 5}}).outputs[0].shape, (Shape{2, 5}))
      << "the shape that SequenceMask gives";
}

TEST(MatrixMultiplyLayer, SaysWhatDoesNotFit) {
  const std::string section = R"({"type": "MatrixMultiply"})";
  EXPECT_EQ(spec_of(section, {{3, 4, 5}, {3, 5, 2}}).outputs[0].shape, (Shape{3, 4, 2}));
  EXPECT_EQ(spec_of(section, {{4, 5}, {5, 3, 2}}).outputs[0].shape, (Shape{4, 3, 2}));
  EXPECT_EQ(spec_error(section, {{4, 5}, {6, 3, 2}}),
            "bottom/1: the matrices of the first tensor have 5 columns, but the matrices of the second have 6 rows; "
            "expected equal numbers. The shapes are [4,5] and [6,3,2]");
  EXPECT_EQ(
      spec_error(section, {{3, 4, 5}, {5, 2}}),
      "bottom/1: MatrixMultiply takes tensors with the same number of matrices: the first has shape [3,4,5], this one "
      "[5,2]");
  EXPECT_EQ(spec_error(section, {{4, 5}, {4, 2}}),
            "bottom/1: the matrices of the first tensor have 5 columns, but the matrices of the second have 4 rows; "
            "expected equal numbers. The shapes are [4,5] and [4,2]");
}

TEST(LayerNormLayer, NormalizesTheLastDimension) {
  const LayerSpec spec = spec_of(R"({"type": "LayerNorm"})", {{3, 4, 5}});
  EXPECT_EQ(spec.weights[0].shape, (Shape{5}));
  EXPECT_FALSE(spec.weights[0].penalised);
  EXPECT_EQ(spec.scratch[0].shape, (Shape{12, 2}));
  EXPECT_EQ(spec_error(R"({"type": "LayerNorm"})", {{4}}),
            "bottom: LayerNorm takes a tensor of 2 to 4 dimensions, found shape [4]");
}

TEST(PReLUDiceLayer, NeedsItsTwoNumbers) {
  EXPECT_EQ(complaints(R"({"type": "PReLU_Dice", "prelu_dice_param": {"alpha": 0.1}})"),
            "/layers/1/prelu_dice_param: PReLU_Dice needs \"epsilon\": added to the variance\n");
}

}  // namespace
}  // namespace hctr::test
