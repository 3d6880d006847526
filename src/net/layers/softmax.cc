// Softmax: normalizes every row of the last dimension to positive values with sum 1.
#include "ops/dense/softmax.h"

#include "net/layers/layer_type.h"
#include "net/layers/onnx_parts.h"
#include "ops/common/fill.h"

namespace hctr {
namespace {

class Softmax : public Layer {
 public:
  Softmax(const std::string&, NoParams) {}

  LayerSpec spec(const Specs& inputs) const override {
    const Shape& shape = inputs[0].shape;
    if (shape.rank() < 2)
      throw LayerError("bottom/0", cat("Softmax takes a tensor of 2 to 4 dimensions, found shape ", to_string(shape)));
    if (inputs.size() == 2 && !ops::mask_fits(inputs[1].shape, shape))
      throw LayerError(
          "bottom/1",
          cat("the mask has shape ", to_string(inputs[1].shape), ", the scores ", to_string(shape),
              ": the mask of Softmax has the shape of the scores, [b, ..., n], or [b, 1, n] for all rows of "
              "a sample"));
    return {.outputs = {TensorSpec(inputs[0].dtype, shape)}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::softmax(ctx, io.in[0], mask(io), io.out[0]);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    add_softmax(graph, io.in[0], io.in.size() == 2 ? std::optional(io.in[1]) : std::nullopt, io.y());
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.d_in[0]) ops::softmax_backward(ctx, io.out[0], mask(io), io.d_out[0], *io.d_in[0]);
    if (io.in.size() == 2 && io.d_in[1]) ops::fill(ctx, 0, *io.d_in[1]);
  }

 private:
  static std::optional<Tensor> mask(const LayerIo& io) {
    return io.in.size() == 2 ? std::optional(io.in[1]) : std::nullopt;
  }
};

}  // namespace

LayerType softmax() {
  return LayerType::of<Softmax>("Softmax",
                                "y = exp(x) / sum of exp(x) over the last dimension. An optional second bottom is "
                                "a mask: x counts as -10000 where the mask is 0. The mask has the shape of x, or "
                                "size 1 in the dimensions between the first and the last",
                                {1, 2}, {1, 1}, Schema<NoParams>("Softmax"));
}

}  // namespace hctr
