// CrossEntropyLoss: the cross entropy of two classes with one logit each.
#include "net/layers/layer_type.h"
#include "net/layers/loss_params.h"
#include "net/layers/onnx_graph.h"
#include "ops/loss/cross_entropy.h"

namespace hctr {
namespace {

class CrossEntropyLoss : public LossLayer {
 public:
  CrossEntropyLoss(const std::string&, LossParams params) : params_(params) {}

  LayerSpec spec(const Specs& inputs) const override {
    const int64_t rows = inputs[0].rows();
    if (inputs[0].shape != Shape{rows, 2})
      throw LayerError("bottom/0", cat("CrossEntropyLoss takes logits of two columns, one for each class, found shape ",
                                       to_string(inputs[0].shape)));
    if (inputs[1].shape != Shape{rows, 1})
      throw LayerError("bottom/1", cat("CrossEntropyLoss takes labels of one column, 0 or 1, for ", rows,
                                       " rows, found shape ", to_string(inputs[1].shape)));
    expect_sample_weights(inputs, "CrossEntropyLoss");
    return {.outputs = {TensorSpec(DType::f32, {1}), TensorSpec(DType::f32, {rows, 1})}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::two_class_cross_entropy(ctx, io.in[0], io.in[1], io.out[0], io.out[1], term_weights(params_, io));
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    const std::string difference = graph.add("Sub", {graph.slice(io.x(), 1, 1, 2), graph.slice(io.x(), 1, 0, 1)});
    graph.add_as(io.y(), "Sigmoid", {difference});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.d_in[0])
      ops::two_class_cross_entropy_backward(ctx, io.in[0], io.in[1], static_cast<float>(params_.loss_weight),
                                            *io.d_in[0], term_weights(params_, io));
    write_no_gradients(ctx, io);
  }

  double weight() const override { return params_.loss_weight; }
  Regularizer regularizer() const override { return params_.regularizer(); }

 private:
  LossParams params_;
};

}  // namespace

LayerType cross_entropy_loss() {
  return LayerType::of<CrossEntropyLoss>(
      "CrossEntropyLoss",
      "mean over samples of -log softmax(z)[k], z two logits, k = 1 if the label is at least 0.5, else 0; bottoms: "
      "logits, labels and optionally the weight of each sample",
      {2, 3}, {1, 1}, regularized(Schema<LossParams>("CrossEntropyLoss")));
}

}  // namespace hctr
