// One fully connected stage, y = f(x W + b). InnerProduct has one, an MLP several.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layers/layer.h"
#include "ops/activation.h"

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

  /// The weights for this many inputs: W [in, num_output], then b [num_output]; names end in `suffix`.
  void add_weights(int64_t in, const std::string& suffix, std::vector<WeightSpec>&) const;
  size_t weights() const { return use_bias ? 2 : 1; }
  /// Whether f is computed from a copy of x W + b that backward needs too. ReLU is not: its sign is that of y.
  bool keeps_input_of_activation() const {
    return activation != StageActivation::none && activation != StageActivation::relu;
  }

  /// `w` points to weights(); `z` is given when keeps_input_of_activation().
  void forward(Context&, Tensor x, const Tensor* w, std::optional<Tensor> z, Tensor y) const;
  /// The gradient of x if d_x is given. `d_z`, shaped like y, is written unless the activation is none;
  /// backward_weights() reads it.
  void backward(Context&, const Tensor* w, std::optional<Tensor> z, Tensor y, Tensor d_y, std::optional<Tensor> d_z,
                std::optional<Tensor> d_x) const;
  /// Gradients of weights, after backward().
  void backward_weights(Context&, Tensor x, Tensor d_y, std::optional<Tensor> d_z, const Tensor* d_w) const;
};

}  // namespace hctr
