// Layers that apply a function to every element: one class, and one layer type for each function.
#include "ops/common/activation.h"

#include "net/layers/layer_type.h"
#include "net/layers/onnx_parts.h"

namespace hctr {
namespace {

using Function = ops::Activation::Kind;

struct EluParams {
  double alpha = 1;
};
struct LeakyReluParams {
  double alpha = 0.01;
};

template <Function kFunction>
class Activation : public Layer {
 public:
  Activation(const std::string&, NoParams) {}
  template <class P>
  Activation(const std::string&, P params) : function_{kFunction, static_cast<float>(params.alpha)} {}

  LayerSpec spec(const Specs& inputs) const override {
    LayerSpec spec{.outputs = {TensorSpec(inputs[0].dtype, inputs[0].shape)}};
    if constexpr (kFunction == Function::relu) spec.traits.element_function = {ElementFunction::Kind::relu};
    return spec;
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::activate(ctx, function_, io.in[0], io.out[0]);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override { add_activation(graph, function_, io.x(), io.y()); }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.d_in[0]) ops::activate_backward(ctx, function_, io.in[0], io.d_out[0], *io.d_in[0]);
  }

 private:
  ops::Activation function_{kFunction, 0};
};

template <Function kFunction, class P = NoParams>
LayerType type(const char* name, const char* formula, Schema<P> schema) {
  return LayerType::of<Activation<kFunction>>(name, formula, {1, 1}, {1, 1}, std::move(schema));
}
template <Function kFunction>
LayerType type(const char* name, const char* formula) {
  return type<kFunction>(name, formula, Schema<NoParams>(name));
}

}  // namespace

LayerType elu() {
  return type<Function::elu>("ELU", "y = x < 0 ? alpha (exp(x) - 1) : x",
                             Schema<EluParams>("ELU", "elu_param")
                                 .need("alpha", &EluParams::alpha,
                                       "factor alpha: y approaches -alpha "
                                       "for very negative x"));
}
LayerType gelu() {
  return type<Function::gelu>("GELU",
                              "y = x Phi(x), with Phi the distribution function of the "
                              "standard normal distribution");
}
LayerType leaky_relu() {
  return type<Function::leaky_relu>("LeakyReLU", "y = x < 0 ? alpha x : x",
                                    Schema<LeakyReluParams>("LeakyReLU", "leaky_relu_param")
                                        .opt("alpha", &LeakyReluParams::alpha, "slope below zero"));
}
LayerType relu() { return type<Function::relu>("ReLU", "y = max(x, 0)"); }
LayerType sigmoid() {
  return type<Function::sigmoid>("Sigmoid",
                                 "y = 1 / (1 + exp(-x)). Do not use Sigmoid before a loss: losses apply "
                                 "a sigmoid themselves");
}
LayerType silu() { return type<Function::silu>("SiLU", "y = x / (1 + exp(-x))"); }
LayerType tanh() { return type<Function::tanh>("Tanh", "y = tanh(x)"); }

}  // namespace hctr
