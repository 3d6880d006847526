// Sub: the element-wise difference of its two inputs.
#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "ops/common/copy.h"
#include "ops/dense/multiply.h"

namespace hctr {
namespace {

class Sub : public Layer {
 public:
  Sub(const std::string&, NoParams) {}

  LayerSpec spec(const Specs& inputs) const override {
    need_one_shape(inputs, "Sub");
    return {.outputs = {TensorSpec(inputs[0].dtype, inputs[0].shape)}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::subtract(ctx, io.in[0], io.in[1], io.out[0]);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    graph.add_as(io.y(), "Sub", {io.x(), io.in[1].name});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.d_in[0]) ops::copy(ctx, io.d_out[0], *io.d_in[0]);
    if (io.d_in[1]) ops::negate(ctx, io.d_out[0], *io.d_in[1]);
  }
};

}  // namespace

LayerType sub() { return LayerType::of<Sub>("Sub", "y = x_0 - x_1", {2, 2}, {1, 1}, Schema<NoParams>("Sub")); }

}  // namespace hctr
