// One fully connected stage, y = f(x W + b), optionally with dropout after f. InnerProduct has one stage, an MLP
// several.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/layers/layer.h"
#include "net/layers/onnx_graph.h"
#include "ops/common/activation.h"
#include "ops/gemm/concat_linear.h"
#include "ops/gemm/fp8_product.h"
#include "ops/loss/logit_loss.h"

namespace hctr {

/// The activation of a stage; "None" is the identity.
enum class StageActivation { none, relu, sigmoid, tanh, gelu, silu };
template <>
const Words<StageActivation>& EnumWords<StageActivation>::table();

struct FullyConnected {
  int64_t num_output = 0;
  StageActivation activation = StageActivation::none;
  bool use_bias = true;
  Initializer weight_init = Initializer::by_default, bias_init = Initializer::by_default;
  float dropout_rate = 0;  ///< nonzero only after ReLU
  uint64_t dropout_stream = 0;
  /// Whether the reader of y computes this stage's drelu and bias gradient, so that d_y is the gradient of x W + b.
  /// Only with relu_with_bias().
  bool finished_by_reader = false;
  bool fp8 = false;  ///< whether the GEMMs of training take FP8 operands

  /// Whether the stage supports FP8 for this many inputs, given that both widths must be at least `least_width`.
  bool can_fp8(int64_t in, int64_t least_width) const {
    return in >= least_width && num_output >= least_width && num_output == ops::fp8_padded(num_output);
  }

  /// The weights for this many inputs: W [in, num_output], then b [num_output]; names end in `suffix`.
  void add_weights(int64_t in, const std::string& suffix, std::vector<WeightSpec>&) const;
  size_t weights() const { return use_bias ? 2 : 1; }
  /// Whether f reads a copy of x W + b that backward needs too. ReLU does not: the sign of y is enough.
  bool keeps_input_of_activation() const {
    return activation != StageActivation::none && activation != StageActivation::relu;
  }
  bool relu_with_bias() const { return use_bias && activation == StageActivation::relu; }
  /// Whether the GEMM with W and its epilogue are one operator, which is faster with transposed weights.
  bool reads_transposed_weights() const { return relu_with_bias() && num_output > 1 && !fp8; }

  /// Adds y = f(x W + b) in evaluation form to the graph, with the names of weights().
  void to_onnx(OnnxGraph&, const std::string& x, const std::string* weights, const std::string& y) const;

  /// Memory of an FP8 stage, as bytes: kept from forward to backward, and used during each of the two.
  struct Fp8Memory {
    Tensor x_transposed, w;
    Tensor rows, transposed, d_x;
  };
  /// Adds the scratch and the transient memory for it to the spec.
  void add_fp8_memory(const TensorSpec& y, int64_t in, Specs& scratch, Specs& transient) const;

  /// The tensors of one call.
  struct Io {
    Tensor x;
    const Tensor* w;          ///< weights()
    std::optional<Tensor> z;  ///< x W + b, when keeps_input_of_activation()
    Tensor y;
    std::optional<Tensor> w_transposed{};  ///< LayerIo::transposed of W
    std::optional<Tensor> d_y;             ///< absent in forward()
    std::optional<Tensor> d_z;             ///< shaped like y; written by backward(). Unless own_gradient(), it is d_y
    std::optional<Tensor> d_x;             ///< absent if the gradient is not needed
    const Tensor* d_w = nullptr;           ///< wgrads, in the order of weights()
    std::optional<Tensor> scratch;         ///< if needs_scratch()
    std::optional<ReluEnd> below;          ///< the stage that wrote x, if this one computes its drelu
    ops::OverflowSearch operands{};        ///< LayerIo::operands
    std::optional<Fp8Memory> fp8_memory;   ///< if fp8, with fp8_scaling
    std::optional<ops::Fp8ProductScaling> fp8_scaling;
  };
  /// Whether the gradient of x W + b has memory of its own; otherwise it overwrites d_y.
  bool own_gradient() const {
    return activation != StageActivation::none && !finished_by_reader && !(fp8 && relu_with_bias());
  }
  bool needs_scratch() const { return use_bias || num_output == 1; }
  /// Scratch memory for an output `y` and inputs of `width` columns.
  TensorSpec scratch(const TensorSpec& y, int64_t width) const;
  /// The tensors with which the reader of y computes this stage's drelu.
  ReluEnd end(const Io&) const;
  /// Whether y = x W + b has one column and no activation.
  bool is_logit_layer() const { return num_output == 1 && activation == StageActivation::none && dropout_rate == 0; }
  /// The inputs of a loss that runs this stage: the concatenated tensors, the weights over all of them, and y.
  ops::LogitLayer logit_layer(std::vector<ops::ConcatLinearInput>, const Io&) const;
  void forward(Context&, const Io&, Phase) const;
  /// Writes d_z, d_x and the d_w that the same pass computes.
  void backward(Context&, const Io&) const;
  /// Whether backward_weights() calls ops::weight_gradient() with x and gradient_of_sums().
  bool has_weight_product() const { return !fp8 && num_output > 1; }
  Tensor gradient_of_sums(const Io& io) const { return own_gradient() ? *io.d_z : *io.d_y; }
  /// Writes the remaining wgrads, after backward().
  void backward_weights(Context&, const Io&) const;

 private:
  /// Whether backward() checks x for overflow as it reads it, for a deferred wgrad.
  bool searches_x(Context&, const Io&) const;
  /// x W, plus the bias if any, with ReLU if relu_with_bias().
  void multiply(Context&, const Io&, const Tensor& sums) const;
  /// backward() in FP8.
  void backward_fp8(Context&, const Io&) const;
};

/// The arguments with which ops::concat_linear_backward() computes the drelu of the layer that wrote x.
std::optional<ops::ConcatLinearInput::BelowRelu> below_relu(const std::optional<ReluEnd>&);

}  // namespace hctr
