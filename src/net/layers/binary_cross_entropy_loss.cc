// BinaryCrossEntropyLoss: the log loss of a click, from logits.
#include "net/layers/fusable_layer.h"
#include "net/layers/layer_type.h"
#include "net/layers/loss_params.h"
#include "net/layers/onnx_graph.h"
#include "ops/loss/cross_entropy.h"

namespace hctr {
namespace {

class BinaryCrossEntropyLoss : public LogitLoss {
 public:
  BinaryCrossEntropyLoss(const std::string&, LossParams params) : params_(params) {}

  LayerSpec spec(const Specs& inputs) const override {
    need_rank(inputs[0], 2, "bottom/0", "BinaryCrossEntropyLoss");
    for (size_t i = 0; i < 2; ++i)
      if (inputs[i].shape != Shape{inputs[0].rows(), 1})
        throw LayerError(cat("bottom/", i),
                         cat("BinaryCrossEntropyLoss takes logits and labels with one column each and the same number "
                             "of rows: the logits have shape ",
                             to_string(inputs[0].shape), ", the labels ", to_string(inputs[1].shape)));
    expect_sample_weights(inputs, "BinaryCrossEntropyLoss");
    return {.outputs = {TensorSpec(DType::f32, {1}), TensorSpec(DType::f32, inputs[0].shape)},
            .scratch = {TensorSpec(DType::i32, {1})}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    if (io.logit) return ops::logit_loss(ctx, io.logit->layer, io.logit->sum, logit_target(io));
    std::optional<ops::LogitGradient> gradient;
    if (gradient_in_forward_ && !io.d_in.empty() && io.d_in[0])
      gradient = ops::LogitGradient{*io.d_in[0], static_cast<float>(params_.loss_weight)};
    ops::binary_cross_entropy(ctx, io.in[0], io.in[1], io.out[0], io.out[1], term_weights(params_, io), gradient);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override { graph.add_as(io.y(), "Sigmoid", {io.x()}); }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.logit)
      ops::logit_loss_backward(ctx, io.logit->layer, io.logit->sum, logit_target(io));
    else if (io.d_in[0] && !gradient_in_forward_)
      ops::binary_cross_entropy_backward(ctx, io.in[0], io.in[1], static_cast<float>(params_.loss_weight), *io.d_in[0],
                                         term_weights(params_, io));
    write_no_gradients(ctx, io);
  }

  double weight() const override { return params_.loss_weight; }
  Regularizer regularizer() const override { return params_.regularizer(); }

  std::shared_ptr<const Layer> with_gradient_in_forward() const override {
    auto layer = std::make_shared<BinaryCrossEntropyLoss>(*this);
    layer->gradient_in_forward_ = true;
    return layer;
  }

 private:
  ops::LogitTarget logit_target(const LayerIo& io) const {
    return {io.in[1],
            io.out[0],
            io.out[1],
            {*io.d_in[0], static_cast<float>(params_.loss_weight)},
            term_weights(params_, io),
            io.scratch[0]};
  }

  LossParams params_;
  bool gradient_in_forward_ = false;
};

}  // namespace

LayerType binary_cross_entropy_loss() {
  return LayerType::of<BinaryCrossEntropyLoss>("BinaryCrossEntropyLoss",
                                               "mean over samples of max(z, 0) - z y + log(1 + exp(-|z|)), z "
                                               "logits, y labels; bottoms: z, y and optionally the weight of each "
                                               "sample",
                                               {2, 3}, {1, 1},
                                               regularized(Schema<LossParams>("BinaryCrossEntropyLoss")));
}

}  // namespace hctr
