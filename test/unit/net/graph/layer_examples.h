// One valid section of every layer type, with the shapes of its inputs.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace hctr::test {

/// An example of a layer. In `inputs`, each letter stands for one dimension; equal letters are equal sizes, and "1" and
/// "2" are literal sizes. The digits after a bar are other valid numbers of dimensions.
struct LayerExample {
  std::string type;
  std::string fields;               ///< fields of the section, as JSON members
  std::vector<std::string> inputs;  ///< shapes such as "b n", "b s d", "b n|1234"
  int tops = 1;
  /// Fields that are valid alone but not with these inputs, and the expected pointer of the error in the section.
  struct Misfit {
    std::string fields, path;
  };
  std::vector<Misfit> misfits{};
};

inline void PrintTo(const LayerExample& example, std::ostream* out) { *out << example.type; }

/// Returns the size for a letter.
inline int64_t size_of_letter(char letter) {
  switch (letter) {
    case 'b':
      return 8;
    case 'n':
      return 6;
    case 'm':
      return 9;
    case 's':
      return 3;
    case 'd':
      return 4;
    case 'e':
      return 10;
    case 'i':
      return 5;
    case 'j':
      return 7;
    default:
      return letter - '0';
  }
}

inline const std::vector<LayerExample>& layer_examples() {
  static const std::string any = "b n|1234";
  static const std::vector<LayerExample> examples = {
      {"Add", "", {"b n", "b n", "b n"}},
      {"BatchNorm", R"("bn_param": {"factor": 0.1, "eps": 1e-5, "gamma_init": "Zero", "beta_init": "Zero"})", {"b n"}},
      {"BinaryCrossEntropyLoss", R"("regularizer": "L2", "lambda": 0.1, "loss_weight": 2)", {"b 1", "b 1"}},
      {"Cast", "", {any}},
      {"Concat", "", {"b n", "b m"}, 1, {{R"("axis": 2)", "axis"}}},
      {"CrossEntropyLoss", R"("regularizer": "L1", "lambda": 0.1, "loss_weight": 2)", {"b 2", "b 1"}},
      {"DotProduct", "", {"b n", "b n"}},
      {"Dropout", R"("rate": 0.5)", {any}},
      {"ELU", R"("elu_param": {"alpha": 1})", {any}},
      {"ElementwiseMultiply", "", {"b n", "b n"}},
      {"FmOrder2", R"("out_dim": 3)", {any}, 1, {{R"("out_dim": 4)", "out_dim"}}},
      {"FusedInnerProduct",
       R"("fc_param": {"num_output": 5, "weight_init": "Zero", "bias_init": "Uniform"}, "activation": "Relu", "position": "Isolated")",
       {"b n"},
       1,
       {{R"("fc_param": {"num_output": 5}, "position": "Head")", "top"}}},
      {"FusedReshapeConcat", "", {"b s d", "b s e"}, 2},
      {"FusedReshapeConcatGeneral", "", {"b s d", "b s e"}},
      {"GELU", "", {any}},
      {"Gather",
       R"("indices": [0, 3])",
       {any},
       1,
       {{R"("indices": [0, 8])", "indices/1"}, {R"("indices": [])", "indices"}}},
      {"GRU",
       R"("gru_param": {"num_output": 5, "SeqLength": 3, "vector_size": 4, "weight_init": "XavierNorm", "bias_init": "Uniform"})",
       {"b s d"},
       1,
       {{R"("gru_param": {"num_output": 5, "SeqLength": 4, "vector_size": 3})", "bottom"}}},
      {"InnerProduct",
       R"("fc_param": {"num_output": 5, "weight_init": "XavierNorm", "bias_init": "XavierUniform"})",
       {"b n"}},
      {"Interaction", "", {"b d", "b s d"}},
      {"LayerNorm", R"("ln_param": {"eps": 1e-5, "gamma_init": "Zero", "beta_init": "Zero"})", {"b n|234"}},
      {"LeakyReLU", R"("leaky_relu_param": {"alpha": 0.1})", {any}},
      {"MLP",
       R"("mlp_param": {"num_outputs": [5, 2], "activation": "Relu", "activations": ["Relu", "None"], "use_bias": true, "weight_init": "Zero", "bias_init": "Zero"})",
       {"b n"},
       1,
       {{R"("mlp_param": {"num_outputs": [5, 2], "activations": ["Relu"]})", "mlp_param/activations"},
        {R"("mlp_param": {"num_outputs": [5, 2], "activations": ["Relu", "Rleu"]})", "mlp_param/activations/1"},
        {R"("mlp_param": {"num_outputs": []})", "mlp_param/num_outputs"}}},
      {"MatrixMultiply", "", {"b n", "n d"}},
      {"MultiCross",
       R"("mc_param": {"num_layers": 2, "projection_dim": 0, "full_matrix": true, "weight_init": "Uniform", "bias_init": "Zero"})",
       {"b n"},
       1,
       {{R"("mc_param": {"num_layers": 2, "projection_dim": 2, "full_matrix": true})", "mc_param/full_matrix"}}},
      {"MultiCrossEntropyLoss",
       R"("target_weight": [1, 1, 1, 1, 1, 1], "regularizer": "L2", "lambda": 0.1, "loss_weight": 2)",
       {"b n", "b n"},
       1,
       {{R"("target_weight": [1, 1])", "target_weight"}}},
      {"MultiHeadAttention",
       R"("num_attention_heads": 2)",
       {"b i d", "b j d", "b j e", "b 1 i j"},
       1,
       {{R"("num_attention_heads": 3)", "num_attention_heads"}}},
      {"Multiply",
       R"("weight_dims": [6, 4], "weight_init": "Zero")",
       {"b n"},
       1,
       {{R"("weight_dims": [5, 4])", "weight_dims/0"}, {R"("weight_dims": [6])", "weight_dims"}}},
      {"PReLU", R"("prelu_param": {"alpha_init": 0.25, "shared": true})", {any}},
      {"PReLU_Dice", R"("prelu_dice_param": {"alpha": 0.1, "epsilon": 1e-8})", {"b n"}},
      {"ReLU", "", {any}},
      {"ReduceMean", R"("axis": 1)", {"b n|23"}, 1, {{R"("axis": 2)", "axis"}}},
      {"ReduceSum", R"("axis": 1)", {"b n|23"}, 1, {{R"("axis": 2)", "axis"}}},
      {"Reshape",
       R"("leading_dim": 12)",
       {"b s d|1234"},
       1,
       {{R"("leading_dim": 5)", "leading_dim"},
        {R"("leading_dim": 4, "time_step": 5)", "leading_dim"},
        {R"("selected": [0, 3])", "selected/1"},
        {R"("selected": [])", "selected"},
        {R"("selected": [0], "time_step": 2)", "time_step"}}},
      {"Scale", R"("scale_param": {"axis": 1, "factor": 2})", {"b n"}},
      {"SequenceMask", R"("max_sequence_len_from": 5, "max_sequence_len_to": 7)", {"b 1", "b 1"}},
      {"SiLU", "", {any}},
      {"Sigmoid", "", {any}},
      {"Slice",
       R"("ranges": [[0, 2], [1, 6]])",
       {"b n"},
       2,
       {{R"("ranges": [[0, 2], [3, 7]])", "ranges/1"},
        {R"("ranges": [[0, 2], [3, 3]])", "ranges/1"},
        {R"("ranges": [[0, 2], [-1, 3]])", "ranges/1"},
        {R"("ranges": [[0, 2], [3]])", "ranges/1"},
        {R"("ranges": [])", "ranges"},
        {R"("ranges": [[0, 2]])", "top"}}},
      {"Softmax", "", {"b 1 i j", "b 1 i j"}},
      {"Sub", "", {"b n", "b n"}},
      {"Tanh", "", {any}},
      {"WeightMultiply",
       R"("weight_dims": [6, 4], "weight_init": "Zero")",
       {"b n"},
       1,
       {{R"("weight_dims": [5, 4])", "weight_dims/0"}, {R"("weight_dims": [6, 4, 1])", "weight_dims"}}},
  };
  return examples;
}

}  // namespace hctr::test
