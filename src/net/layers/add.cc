// Add: the element-wise sum of its inputs.
#include "ops/common/add.h"

#include "net/layers/layer_type.h"
#include "net/layers/onnx_parts.h"
#include "ops/common/copy.h"

namespace hctr {
namespace {

class Add : public Layer {
 public:
  Add(const std::string&, NoParams) {}

  LayerSpec spec(const Specs& inputs) const override {
    need_one_shape(inputs, "Add");
    return {.outputs = {TensorSpec(inputs[0].dtype, inputs[0].shape)}, .hands_gradient_on = true};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override { ops::add(ctx, io.in, io.out[0]); }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override { graph.add_as(io.y(), "Sum", input_names(io)); }

  void backward(Context& ctx, const LayerIo& io) const override {
    for (const auto& d_in : io.d_in)
      if (d_in) ops::copy(ctx, io.d_out[0], *d_in);
  }
};

}  // namespace

LayerType add() {
  return LayerType::of<Add>("Add", "y = x_0 + x_1 + ...", {2, kAnyNumber}, {1, 1}, Schema<NoParams>("Add"));
}

}  // namespace hctr
