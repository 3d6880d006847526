// PReLU: ReLU with a trainable slope below zero.
#include "ops/dense/prelu.h"

#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"

namespace hctr {
namespace {

struct PReLUParams {
  double alpha_init = 0.25;
  bool shared = false;
};

class PReLU : public Layer {
 public:
  PReLU(const std::string&, PReLUParams params) : params_(params) {}

  LayerSpec spec(const Specs& inputs) const override {
    const TensorSpec& x = inputs[0];
    const int64_t slopes = params_.shared ? 1 : x.shape[x.shape.rank() - 1];
    return {.outputs = {TensorSpec(x.dtype, x.shape)},
            .weights = {{"alpha", {1, slopes}, {InitialValues::Kind::constant, params_.alpha_init}, false}},
            .scratch = {ops::prelu_scratch(x.rows(), x.row_elements())},
            .scratch_of_backward = {0}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::prelu(ctx, io.in[0], io.weights[0], io.out[0]);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    const Shape& shape = io.in[0].shape;
    std::string slopes = io.weights[0];
    if (shape.rank() == 1) slopes = graph.add("Reshape", {slopes, graph.numbers({-1})});
    graph.add_as(io.y(), "PRelu", {io.x(), slopes});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    ops::prelu_backward(ctx, io.in[0], io.weights[0], io.d_out[0], io.scratch[0], io.d_in[0], io.d_weights[0]);
  }

 private:
  PReLUParams params_;
};

}  // namespace

LayerType prelu() {
  using P = PReLUParams;
  return LayerType::of<PReLU>(
      "PReLU", "y = x < 0 ? alpha x : x, alpha trainable", {1, 1}, {1, 1},
      Schema<P>("PReLU", "prelu_param")
          .opt("alpha_init", &P::alpha_init, "initial slope for negative x")
          .opt("shared", &P::shared,
               "true: one slope for all elements; false: one slope for each index of the last dimension"));
}

}  // namespace hctr
