// Cast: the identity. All activations of a model have one dtype, and layers convert dtypes where necessary. The layer
// exists for configs of old HugeCTR versions, which place conversions explicitly.
#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "ops/common/copy.h"

namespace hctr {
namespace {

class Cast : public Layer {
 public:
  Cast(const std::string&, NoParams) {}

  LayerSpec spec(const Specs& inputs) const override {
    return {.outputs = {TensorSpec(inputs[0].dtype, inputs[0].shape)}, .memory = LayerSpec::Memory::reshape_of_input};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override { ops::copy(ctx, io.in[0], io.out[0]); }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override { graph.add_as(io.y(), "Identity", {io.x()}); }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.d_in[0]) ops::copy(ctx, io.d_out[0], *io.d_in[0]);
  }
};

}  // namespace

LayerType cast() {
  return LayerType::of<Cast>("Cast", "y = x; accepted for old configs: the program converts types where needed", {1, 1},
                             {1, 1}, Schema<NoParams>("Cast"));
}

}  // namespace hctr
