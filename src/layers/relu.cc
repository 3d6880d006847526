// ReLU: negative elements become zero.
#include "layers/layer_type.h"
#include "ops/activation.h"

namespace hctr {
namespace {

class ReLU : public Layer {
 public:
  ReLU(const std::string&, NoParams) {}

  LayerPlan plan(const Specs& inputs) const override { return {.outputs = {TensorSpec(inputs[0].dtype, inputs[0].shape)}}; }

  void forward(Context& ctx, const LayerIo& io, Phase) const override { ops::activate(ctx, kRelu, io.in[0], io.out[0]); }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.d_in[0]) ops::activate_backward(ctx, kRelu, io.in[0], io.d_out[0], *io.d_in[0]);
  }

 private:
  static constexpr ops::Activation kRelu{ops::Activation::Kind::relu, 0};
};

}  // namespace

LayerType relu() { return LayerType::of<ReLU>("ReLU", "y = max(x, 0)", {1, 1}, {1, 1}, Schema<NoParams>("ReLU")); }

}  // namespace hctr
