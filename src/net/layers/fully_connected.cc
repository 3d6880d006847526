#include "net/layers/fully_connected.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "net/layers/onnx_parts.h"
#include "ops/common/copy.h"
#include "ops/common/dropout.h"
#include "ops/gemm/bias_gradient.h"
#include "ops/gemm/concat_linear.h"
#include "ops/gemm/gradient_through_relu.h"
#include "ops/gemm/linear.h"
#include "ops/gemm/linear_dropout.h"
#include "ops/gemm/weight_gradient.h"

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
  weights.push_back(
      {"weights" + suffix,
       {in, num_output},
       initial_values(weight_init == Initializer::by_default ? Initializer::xavier_norm : weight_init, fan_in, fan_out),
       true,
       reads_transposed_weights()});
  if (!use_bias) return;
  const InitialValues bias = bias_init == Initializer::by_default
                                 ? InitialValues{InitialValues::Kind::normal, std::sqrt(1.0 / fan_out)}
                                 : initial_values(bias_init, 0, fan_out);
  weights.push_back({"bias" + suffix, {num_output}, bias});
}

std::optional<ops::ConcatLinearInput::BelowRelu> below_relu(const std::optional<ReluEnd>& end) {
  using BelowRelu = ops::ConcatLinearInput::BelowRelu;
  return end ? std::optional(BelowRelu{end->factor, end->d_bias}) : std::nullopt;
}

TensorSpec FullyConnected::scratch(const TensorSpec& y, int64_t width) const {
  const auto one_of = [](const TensorSpec& a, const TensorSpec& b) {
    return a.shape.elements() > b.shape.elements() ? a : b;
  };
  const TensorSpec of_bias = fp8                  ? ops::fp8_gradient_scratch(y)
                             : finished_by_reader ? ops::gradient_through_relu_scratch(y)
                                                  : ops::bias_gradient_scratch(num_output);
  return num_output == 1 ? one_of(of_bias, ops::logit_loss_scratch(y.rows(), {width})) : of_bias;
}

void FullyConnected::add_fp8_memory(const TensorSpec& y, int64_t in, Specs& scratch, Specs& transient) const {
  const auto bytes = [](int64_t rows, int64_t columns) {
    return ops::Fp8Matrix::bytes(rows, columns) / static_cast<int64_t>(sizeof(float));
  };
  const int64_t batch = y.rows();
  scratch.emplace_back(DType::f32, Shape{bytes(in, batch)});
  scratch.emplace_back(DType::f32, Shape{bytes(in, num_output)});
  const std::array needed = {bytes(batch, std::max(in, num_output)), bytes(num_output, std::max(in, batch)),
                             in == ops::fp8_padded(in) ? 0 : 2 * bytes(batch, in)};
  if (transient.empty()) transient.assign(needed.size(), TensorSpec(DType::f32, {0}));
  for (size_t i = 0; i < needed.size(); ++i)
    transient[i] = TensorSpec(DType::f32, {std::max(needed[i], transient[i].shape[0])});
}

ReluEnd FullyConnected::end(const Io& io) const {
  return {dropout_rate > 0 ? ops::dropout_scale(dropout_rate) : 1, io.d_w[1], *io.scratch};
}

ops::LogitLayer FullyConnected::logit_layer(std::vector<ops::ConcatLinearInput> inputs, const Io& io) const {
  const auto bias_of = [&](const Tensor* weights) { return use_bias ? std::optional(weights[1]) : std::nullopt; };
  return {std::move(inputs), io.w[0], bias_of(io.w), io.y, io.d_w[0], bias_of(io.d_w), *io.scratch};
}

void FullyConnected::multiply(Context& ctx, const Io& io, const Tensor& sums) const {
  if (fp8) {
    const Fp8Memory& memory = *io.fp8_memory;
    const ops::Fp8Scaling &x = io.fp8_scaling->x, &w = io.fp8_scaling->w;
    ops::fp8_cast(ctx, io.x, true, x, memory.rows.bytes(), memory.x_transposed.bytes());
    ops::fp8_cast(ctx, io.w[0], false, w, memory.w.bytes(), memory.transposed.bytes());
    ops::fp8_product(ctx, ops::fp8_rows(io.x, x, memory.rows.bytes()),
                     ops::fp8_transposed(io.w[0], w, memory.transposed.bytes()),
                     use_bias ? std::optional(io.w[1]) : std::nullopt, relu_with_bias(), sums);
  } else if (use_bias) {
    ops::linear(ctx, io.x, io.w[0], io.w[1], sums, relu_with_bias(), io.w_transposed);
  } else {
    ops::matmul(ctx, io.x, Transpose::no, io.w[0], Transpose::no, sums);
  }
}

void FullyConnected::backward_fp8(Context& ctx, const Io& io) const {
  const Fp8Memory& memory = *io.fp8_memory;
  const ops::Fp8Scaling& scaling = io.fp8_scaling->d_y;
  Tensor d_sums = *io.d_y;
  ops::Fp8GradientEnd end;
  if (relu_with_bias()) {
    end.y = io.y;
    end.factor = dropout_rate > 0 ? ops::dropout_scale(dropout_rate) : 1;
  } else if (activation != StageActivation::none) {
    ops::activate_backward(ctx, function_of(activation), keeps_input_of_activation() ? *io.z : io.y, *io.d_y, *io.d_z);
    d_sums = *io.d_z;
  }
  if (use_bias) {
    end.d_bias = io.d_w[1];
    end.scratch = *io.scratch;
  }
  ops::fp8_cast_gradient(ctx, d_sums, end, scaling, memory.rows.bytes(), memory.transposed.bytes());
  if (!io.d_x) return;
  TensorSpec padded(io.d_x->dtype(), io.d_x->shape(), ops::fp8_padded(io.d_x->dim(1)));
  padded.zero_columns = padded.row_stride - io.d_x->dim(1);
  const Tensor d_x = ops::takes_fp8_product(*io.d_x) ? *io.d_x : Tensor(memory.d_x.bytes(), padded, ctx.device());
  ops::fp8_product(ctx, ops::fp8_rows(d_sums, scaling, memory.rows.bytes()),
                   ops::fp8_rows(io.w[0], io.fp8_scaling->w, memory.w.bytes()), std::nullopt, false, d_x);
  if (io.below)
    ops::relu_bias_gradient(ctx, io.below->factor, io.x, d_x, *io.d_x, io.below->d_bias, io.below->scratch);
  else if (d_x.bytes() != io.d_x->bytes())
    ops::copy(ctx, d_x, *io.d_x);
}

void FullyConnected::forward(Context& ctx, const Io& io, Phase phase) const {
  const bool drops = dropout_rate > 0 && phase == Phase::train;
  if (drops && relu_with_bias() && !fp8)
    return ops::linear_relu_dropout(ctx, io.x, io.w[0], io.w[1], dropout_rate, dropout_stream, io.y, io.w_transposed);
  const Tensor sums = keeps_input_of_activation() ? *io.z : io.y;
  multiply(ctx, io, sums);
  if (activation != StageActivation::none && !relu_with_bias()) ops::activate(ctx, function_of(activation), sums, io.y);
  if (drops) ops::dropout(ctx, dropout_rate, dropout_stream, io.y, io.y);
}

void FullyConnected::to_onnx(OnnxGraph& graph, const std::string& x, const std::string* weights,
                             const std::string& y) const {
  const std::string sums = activation == StageActivation::none ? y : graph.name("sums");
  if (use_bias)
    graph.add_as(sums, "Gemm", {x, weights[0], weights[1]});
  else
    graph.add_as(sums, "MatMul", {x, weights[0]});
  if (activation != StageActivation::none) add_activation(graph, function_of(activation), sums, y);
}

void FullyConnected::backward(Context& ctx, const Io& io) const {
  if (fp8) return backward_fp8(ctx, io);
  if (finished_by_reader) {
    // The reader of y has already computed drelu and the bias gradient. d_y is therefore the gradient of x W + b, and
    // d_w[1] is complete.
  } else if (relu_with_bias()) {
    const float factor = dropout_rate > 0 ? ops::dropout_scale(dropout_rate) : 1;
    ops::relu_bias_gradient(ctx, factor, io.y, *io.d_y, *io.d_z, io.d_w[1], *io.scratch);
  } else if (activation != StageActivation::none) {
    ops::activate_backward(ctx, function_of(activation), keeps_input_of_activation() ? *io.z : io.y, *io.d_y, *io.d_z);
  }
  const Tensor d_sums = gradient_of_sums(io);
  if (!io.d_x) return;
  if (num_output == 1)
    ops::concat_linear_backward(ctx, io.w[0], d_sums, {{io.x, io.d_x, below_relu(io.below)}}, io.d_w[0],
                                use_bias && !relu_with_bias() ? std::optional(io.d_w[1]) : std::nullopt, *io.scratch);
  else if (io.below)
    ops::gradient_through_relu(ctx, d_sums, io.w[0], io.below->factor, io.x, *io.d_x, io.below->d_bias,
                               io.below->scratch, searches_x(ctx, io) ? io.operands : ops::OverflowSearch{});
  else
    ops::matmul(ctx, d_sums, Transpose::no, io.w[0], Transpose::yes, *io.d_x);
}

bool FullyConnected::searches_x(Context& ctx, const Io& io) const {
  if (!io.operands.found || io.x.dtype() != DType::f16 || !io.d_x || !io.below || !has_weight_product()) return false;
  ops::WeightGradientRun run = ops::WeightGradientRun::in_order;
  ops::choose_weight_gradient_run(ctx, io.x, gradient_of_sums(io), io.d_w[0], run);
  return run == ops::WeightGradientRun::together;
}

void FullyConnected::backward_weights(Context& ctx, const Io& io) const {
  if (num_output == 1 && io.d_x) return;  // backward() has written d_w
  const Tensor d_sums = gradient_of_sums(io);
  if (fp8)
    return ops::fp8_product(ctx, ops::fp8_transposed(io.x, io.fp8_scaling->x, io.fp8_memory->x_transposed.bytes()),
                            ops::fp8_transposed(d_sums, io.fp8_scaling->d_y, io.fp8_memory->transposed.bytes()),
                            std::nullopt, false, io.d_w[0]);
  // The overflow check reads the bias gradient instead of d_sums, because the bias gradient contains the column sums of
  // d_sums.
  ops::weight_gradient(ctx, io.x, d_sums, io.d_w[0], {.x = searches_x(ctx, io), .d_y = use_bias});
  if (use_bias && !relu_with_bias()) ops::bias_gradient(ctx, d_sums, io.d_w[1], *io.scratch);
}

}  // namespace hctr
