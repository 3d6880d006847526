#include "layers/fully_connected.h"

#include <cmath>

#include "ops/linear.h"
#include "ops/reduce_axis.h"

namespace hctr {
namespace {

using ops::Transpose;

ops::Activation function_of(StageActivation word) {
  using Kind = ops::Activation::Kind;
  switch (word) {
    case StageActivation::sigmoid:
      return {Kind::sigmoid, 0};
    case StageActivation::tanh:
      return {Kind::tanh, 0};
    case StageActivation::gelu:
      return {Kind::gelu, 0};
    case StageActivation::silu:
      return {Kind::silu, 0};
    default:
      return {Kind::relu, 0};
  }
}

}  // namespace

template <>
const Words<StageActivation>& EnumWords<StageActivation>::table() {
  static const Words<StageActivation> words = {{"None", StageActivation::none}, {"Relu", StageActivation::relu},
                                               {"ReLU", StageActivation::relu}, {"Sigmoid", StageActivation::sigmoid},
                                               {"Tanh", StageActivation::tanh}, {"GELU", StageActivation::gelu},
                                               {"SiLU", StageActivation::silu}};
  return words;
}

void FullyConnected::add_weights(int64_t in, const std::string& suffix, std::vector<WeightSpec>& weights) const {
  const auto fan_in = static_cast<double>(in), fan_out = static_cast<double>(num_output);
  weights.push_back({"weights" + suffix,
                     {in, num_output},
                     initial_values(weight_init == Initializer::by_default ? Initializer::xavier_norm : weight_init,
                                    fan_in, fan_out)});
  if (!use_bias) return;
  const InitialValues bias = bias_init == Initializer::by_default
                                 ? InitialValues{InitialValues::Kind::normal, std::sqrt(1.0 / fan_out)}
                                 : initial_values(bias_init, 0, fan_out);
  weights.push_back({"bias" + suffix, {num_output}, bias});
}

void FullyConnected::forward(Context& ctx, Tensor x, const Tensor* w, std::optional<Tensor> z, Tensor y) const {
  const Tensor sums = keeps_input_of_activation() ? *z : y;
  if (use_bias)
    ops::linear(ctx, x, w[0], w[1], sums);
  else
    ops::matmul(ctx, x, Transpose::no, w[0], Transpose::no, sums);
  if (activation != StageActivation::none) ops::activate(ctx, function_of(activation), sums, y);
}

void FullyConnected::backward(Context& ctx, const Tensor* w, std::optional<Tensor> z, Tensor y, Tensor d_y,
                              std::optional<Tensor> d_z, std::optional<Tensor> d_x) const {
  const bool activates = activation != StageActivation::none;
  if (activates) ops::activate_backward(ctx, function_of(activation), keeps_input_of_activation() ? *z : y, d_y, *d_z);
  if (d_x) ops::matmul(ctx, activates ? *d_z : d_y, Transpose::no, w[0], Transpose::yes, *d_x);
}

void FullyConnected::backward_weights(Context& ctx, Tensor x, Tensor d_y, std::optional<Tensor> d_z,
                                      const Tensor* d_w) const {
  const Tensor d_sums = activation != StageActivation::none ? *d_z : d_y;
  ops::matmul(ctx, x, Transpose::yes, d_sums, Transpose::no, d_w[0]);
  if (use_bias) ops::sum_rows(ctx, d_sums, d_w[1]);
}

}  // namespace hctr
