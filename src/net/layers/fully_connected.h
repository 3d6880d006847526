// One fully connected stage, y = f(x W + b), with optional dropout after f. InnerProduct has one stage, an MLP several.
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
  /// Whether the reader of y computes this stage's drelu and bias gradient. If so, d_y is the gradient of x W + b.
  /// Requires relu_with_bias().
  bool finished_by_reader = false;
  bool fp8 = false;  ///< whether the training GEMMs have FP8 operands

  /// Whether the stage supports FP8 for `in` input columns. Requires that `in` and `num_output` are at least
  /// `least_width`.
  bool can_fp8(int64_t in, int64_t least_width) const {
    return in >= least_width && num_output >= least_width && num_output == ops::fp8_padded(num_output);
  }

  /// Adds the weights for `in` input columns: W [in, num_output], then b [num_output]. The weights' names end in
  /// `suffix`.
  void add_weights(int64_t in, const std::string& suffix, std::vector<WeightSpec>&) const;
  size_t weights() const { return use_bias ? 2 : 1; }
  /// Whether the backward pass needs a copy of x W + b, the input of f. ReLU needs none, because the sign of y is
  /// enough.
  bool keeps_input_of_activation() const {
    return activation != StageActivation::none && activation != StageActivation::relu;
  }
  bool relu_with_bias() const { return use_bias && activation == StageActivation::relu; }
  /// Whether the GEMM with W reads a transposed copy of W. It does if one operator computes the GEMM and its epilogue,
  /// because that operator is faster with transposed weights.
  bool reads_transposed_weights() const { return relu_with_bias() && num_output > 1 && !fp8; }

  /// Adds y = f(x W + b) without dropout to the graph. `weights`: the names of W and, if use_bias, b.
  void to_onnx(OnnxGraph&, const std::string& x, const std::string* weights, const std::string& y) const;

  /// Memory of an FP8 stage, as bytes. `x_transposed` and `w` are kept from forward() to backward(). The other tensors
  /// are used within forward(), and from the start of backward() to the end of backward_weights().
  struct Fp8Memory {
    Tensor x_transposed, w;
    Tensor rows, transposed, d_x;
  };
  /// Adds the scratch and transient memory of Fp8Memory to the specs.
  void add_fp8_memory(const TensorSpec& y, int64_t in, Specs& scratch, Specs& transient) const;

  /// The tensors of one call.
  struct Io {
    Tensor x;
    const Tensor* w;          ///< W and, if use_bias, b
    std::optional<Tensor> z;  ///< x W + b; set if keeps_input_of_activation()
    Tensor y;
    std::optional<Tensor> w_transposed{};  ///< LayerIo::transposed of `w`
    std::optional<Tensor> d_y;             ///< none in forward()
    /// gradient of x W + b, shaped like y; written by backward(). If own_gradient() is false, d_z is d_y
    std::optional<Tensor> d_z;
    std::optional<Tensor> d_x;      ///< none if the gradient is not needed
    const Tensor* d_w = nullptr;    ///< gradients of the weights in `w`
    std::optional<Tensor> scratch;  ///< set if needs_scratch()
    /// tensors of the preceding stage, if this stage computes the preceding stage's drelu
    std::optional<ReluEnd> below;
    ops::OverflowSearch operands{};       ///< see LayerIo::operands
    std::optional<Fp8Memory> fp8_memory;  ///< set if fp8; fp8_scaling is then set, too
    std::optional<ops::Fp8ProductScaling> fp8_scaling;
  };
  /// Whether the gradient of x W + b has memory of its own. If not, it overwrites d_y.
  bool own_gradient() const {
    return activation != StageActivation::none && !finished_by_reader && !(fp8 && relu_with_bias());
  }
  bool needs_scratch() const { return use_bias || num_output == 1; }
  /// The scratch memory for an output `y` and inputs of `width` columns.
  TensorSpec scratch(const TensorSpec& y, int64_t width) const;
  /// The tensors that the reader of y needs to compute this stage's drelu.
  ReluEnd end(const Io&) const;
  /// Whether the stage computes logits: one output column, no activation and no dropout.
  bool is_logit_layer() const { return num_output == 1 && activation == StageActivation::none && dropout_rate == 0; }
  /// The arguments for a loss that runs this stage: the concatenated tensors, their common weights, and y.
  ops::LogitLayer logit_layer(std::vector<ops::ConcatLinearInput>, const Io&) const;
  void forward(Context&, const Io&, Phase) const;
  /// Writes d_z and d_x. Also writes the elements of d_w that the same pass computes.
  void backward(Context&, const Io&) const;
  /// Whether backward_weights() calls ops::weight_gradient() with x and gradient_of_sums().
  bool has_weight_product() const { return !fp8 && num_output > 1; }
  Tensor gradient_of_sums(const Io& io) const { return own_gradient() ? *io.d_z : *io.d_y; }
  /// Writes the wgrads that backward() has not written. Call after backward().
  void backward_weights(Context&, const Io&) const;

 private:
  /// Whether backward() also checks x for overflow, on behalf of a deferred wgrad.
  bool searches_x(Context&, const Io&) const;
  /// Writes x W to `sums`, plus the bias if use_bias, with ReLU if relu_with_bias().
  void multiply(Context&, const Io&, const Tensor& sums) const;
  /// The form of backward() for an FP8 stage.
  void backward_fp8(Context&, const Io&) const;
};

/// The arguments with which ops::concat_linear_backward() computes the drelu of the preceding layer, which wrote x.
std::optional<ops::ConcatLinearInput::BelowRelu> below_relu(const std::optional<ReluEnd>&);

}  // namespace hctr
