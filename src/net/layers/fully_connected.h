// One fully connected stage, y = f(x W + b), with dropout behind f or without. InnerProduct has one, an MLP several.
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
  float dropout_rate = 0;  ///< more than 0 only behind ReLU
  uint64_t dropout_stream = 0;
  /// Whether the stage that reads y turns its gradient into that of x W + b, and writes the bias's: only with
  /// relu_with_bias().
  bool finished_by_reader = false;
  bool fp8 = false;  ///< whether the products of training take their operands in FP8

  /// Whether they can, for this many inputs, if both widths are at least `least_width`.
  bool can_fp8(int64_t in, int64_t least_width) const {
    return in >= least_width && num_output >= least_width && num_output == ops::fp8_padded(num_output);
  }

  /// The weights for this many inputs: W [in, num_output], then b [num_output]; names end in `suffix`.
  void add_weights(int64_t in, const std::string& suffix, std::vector<WeightSpec>&) const;
  size_t weights() const { return use_bias ? 2 : 1; }
  /// Whether f is computed from a copy of x W + b that backward needs too. ReLU is not: its sign is that of y.
  bool keeps_input_of_activation() const {
    return activation != StageActivation::none && activation != StageActivation::relu;
  }
  bool relu_with_bias() const { return use_bias && activation == StageActivation::relu; }
  /// Whether the product with W and what follows it are one operator, which is faster with transposed weights.
  bool reads_transposed_weights() const { return relu_with_bias() && num_output > 1 && !fp8; }

  /// Adds y = f(x W + b) of evaluation, with the names of weights().
  void to_onnx(OnnxGraph&, const std::string& x, const std::string* weights, const std::string& y) const;

  /// Memory of a stage in FP8, as bytes: from forward to backward, and during each of the two.
  struct Fp8Memory {
    Tensor x_transposed, w;
    Tensor rows, transposed, d_x;
  };
  /// The scratch and the transient memory for it.
  void add_fp8_memory(const TensorSpec& y, int64_t in, Specs& scratch, Specs& transient) const;

  /// The tensors of one call.
  struct Io {
    Tensor x;
    const Tensor* w;          ///< weights()
    std::optional<Tensor> z;  ///< x W + b, when keeps_input_of_activation()
    Tensor y;
    std::optional<Tensor> w_transposed{};  ///< LayerIo::transposed of W
    std::optional<Tensor> d_y;             ///< absent in forward()
    std::optional<Tensor> d_z;             ///< shaped like y, unless own_gradient() is false: written by backward()
    std::optional<Tensor> d_x;             ///< absent if the gradient is not needed
    const Tensor* d_w = nullptr;           ///< gradients of weights()
    std::optional<Tensor> scratch;         ///< if needs_scratch()
    std::optional<ReluEnd> below;          ///< of the stage that wrote x, if that is finished by this one
    ops::OverflowSearch operands{};        ///< LayerIo::operands
    std::optional<Fp8Memory> fp8_memory;   ///< if fp8, with fp8_scaling
    std::optional<ops::Fp8ProductScaling> fp8_scaling;
  };
  /// Whether the gradient of x W + b has memory of its own: else it lies in d_y.
  bool own_gradient() const {
    return activation != StageActivation::none && !finished_by_reader && !(fp8 && relu_with_bias());
  }
  bool needs_scratch() const { return use_bias || num_output == 1; }
  /// Scratch memory for an output `y` and inputs of `width` columns.
  TensorSpec scratch(const TensorSpec& y, int64_t width) const;
  /// What the reader of y needs to finish this stage.
  ReluEnd end(const Io&) const;
  /// Whether y = x W + b has one column, and no function behind it.
  bool is_logit_layer() const { return num_output == 1 && activation == StageActivation::none && dropout_rate == 0; }
  /// The tensors of inputs side by side, the weights of all of them, and y of such a stage.
  ops::LogitLayer logit_layer(std::vector<ops::ConcatLinearInput>, const Io&) const;
  void forward(Context&, const Io&, Phase) const;
  /// Writes d_z and d_x, and those d_w that come with them in one pass.
  void backward(Context&, const Io&) const;
  /// Whether backward_weights() calls ops::weight_gradient(), of x and gradient_of_sums().
  bool has_weight_product() const { return !fp8 && num_output > 1; }
  Tensor gradient_of_sums(const Io& io) const { return own_gradient() ? *io.d_z : *io.d_y; }
  /// The other gradients of weights, after backward().
  void backward_weights(Context&, const Io&) const;

 private:
  /// Whether backward() searches x for overflow, as it reads it, for a product that comes later.
  bool searches_x(Context&, const Io&) const;
  /// x W, plus the bias if there is one, and the positive part of it if relu_with_bias().
  void multiply(Context&, const Io&, const Tensor& sums) const;
  /// backward() in FP8.
  void backward_fp8(Context&, const Io&) const;
};

/// What the reader of a layer that ends with ReLU tells ops::concat_linear_backward() of it.
std::optional<ops::ConcatLinearInput::BelowRelu> below_relu(const std::optional<ReluEnd>&);

}  // namespace hctr
