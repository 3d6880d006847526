// MultiCrossEntropyLoss: the weighted cross entropy of several labels per sample; any label may be missing.
#include "net/layers/layer_type.h"
#include "net/layers/loss_params.h"
#include "net/layers/onnx_graph.h"
#include "ops/loss/cross_entropy.h"

namespace hctr {
namespace {

struct MultiCrossEntropyParams : LossParams {
  std::vector<double> target_weight;
};

class MultiCrossEntropyLoss : public LossLayer {
 public:
  MultiCrossEntropyLoss(const std::string&, MultiCrossEntropyParams params)
      : params_(std::move(params)), target_weight_(params_.target_weight.begin(), params_.target_weight.end()) {}

  LayerSpec spec(const Specs& inputs) const override {
    need_rank(inputs[0], 2, "bottom/0", "MultiCrossEntropyLoss");
    if (inputs[1].shape != inputs[0].shape)
      throw LayerError("bottom/1", cat("MultiCrossEntropyLoss takes a label for every logit: the logits have shape ",
                                       to_string(inputs[0].shape), ", the labels ", to_string(inputs[1].shape)));
    if (static_cast<int64_t>(target_weight_.size()) != inputs[0].shape[1])
      throw LayerError("target_weight",
                       cat("has ", target_weight_.size(), target_weight_.size() == 1 ? " number" : " numbers", " for ",
                           inputs[0].shape[1], inputs[0].shape[1] == 1 ? " label" : " labels",
                           "; expected one number for each "
                           "label"));
    expect_sample_weights(inputs, "MultiCrossEntropyLoss");
    return {.outputs = {TensorSpec(DType::f32, {1}), TensorSpec(DType::f32, inputs[0].shape)}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::multi_cross_entropy(ctx, io.in[0], io.in[1], target_weight_, io.out[0], io.out[1], term_weights(params_, io));
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override { graph.add_as(io.y(), "Sigmoid", {io.x()}); }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.d_in[0])
      ops::multi_cross_entropy_backward(ctx, io.in[0], io.in[1], target_weight_,
                                        static_cast<float>(params_.loss_weight), *io.d_in[0],
                                        term_weights(params_, io));
    write_no_gradients(ctx, io);
  }

  double weight() const override { return params_.loss_weight; }
  Regularizer regularizer() const override { return params_.regularizer(); }

 private:
  MultiCrossEntropyParams params_;
  std::vector<float> target_weight_;
};

}  // namespace

LayerType multi_cross_entropy_loss() {
  using P = MultiCrossEntropyParams;
  return LayerType::of<MultiCrossEntropyLoss>(
      "MultiCrossEntropyLoss",
      "the mean, over samples and labels, of t * (max(z, 0) - z y + log(1 + exp(-|z|))), where t is the target_weight "
      "of the label; a label below -0.5 is missing and adds 0; bottoms: logits z, labels y and optionally the weight "
      "of each sample",
      {2, 3}, {1, 1},
      regularized(Schema<P>("MultiCrossEntropyLoss")
                      .need("target_weight", &P::target_weight,
                            "one weight for each column of the labels y, in the order of the columns", at_least(0))));
}

}  // namespace hctr
