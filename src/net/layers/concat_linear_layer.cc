#include "net/layers/concat_linear_layer.h"

#include <numeric>

#include "net/layers/fusable_layer.h"
#include "ops/gemm/concat_linear.h"

namespace hctr {
namespace {

class ConcatLinear : public FusableLayer {
 public:
  ConcatLinear(FullyConnected stage, size_t inputs) : stage_(stage), inputs_(inputs) {}

  LayerSpec spec(const Specs& inputs) const override {
    std::vector<int64_t> widths;
    for (size_t i = 0; i < inputs.size(); ++i) {
      need_rank(inputs[i], 2, cat("bottom/", i), "Concat");
      widths.push_back(inputs[i].shape[1]);
    }
    LayerSpec spec{.outputs = {TensorSpec(inputs[0].dtype, {inputs[0].rows(), 1})}};
    stage_.add_weights(std::accumulate(widths.begin(), widths.end(), int64_t{0}), "", spec.weights);
    spec.scratch.push_back(ops::logit_loss_scratch(inputs[0].rows(), widths));
    spec.traits.weights_in_backward = LayerTraits::WeightsInBackward::always;
    for (size_t i = 0; i < inputs.size(); ++i) spec.traits.finishes_relu_of.push_back(i);
    return spec;
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::concat_linear(ctx, io.in, io.weights[0], stage_.use_bias ? std::optional(io.weights[1]) : std::nullopt,
                       io.out[0]);
  }

  /// Also computes the wgrads, because this pass reads the inputs anyway.
  void backward(Context& ctx, const LayerIo& io) const override {
    ops::concat_linear_backward(ctx, io.weights[0], io.d_out[0], inputs_of(io), io.d_weights[0],
                                stage_.use_bias ? std::optional(io.d_weights[1]) : std::nullopt, io.scratch[0]);
  }

  /// False for a single input, because a different operator multiplies a single input, and a loss cannot run that
  /// operator.
  bool is_logit_layer() const override { return inputs_ > 1; }
  ops::LogitLayer logit_layer(const LayerIo& io) const override {
    FullyConnected::Io own{.x = io.in[0], .w = io.weights.data(), .z = {}, .y = io.out[0]};
    own.d_w = io.d_weights.data();
    own.scratch = io.scratch[0];
    return stage_.logit_layer(inputs_of(io), own);
  }

 private:
  static std::vector<ops::ConcatLinearInput> inputs_of(const LayerIo& io) {
    std::vector<ops::ConcatLinearInput> inputs;
    for (size_t i = 0; i < io.in.size(); ++i)
      inputs.push_back({io.in[i], io.d_in[i], io.below.empty() ? std::nullopt : below_relu(io.below[i])});
    return inputs;
  }

  FullyConnected stage_;
  size_t inputs_;
};

}  // namespace

std::shared_ptr<const Layer> concat_linear(const FullyConnected& stage, size_t inputs) {
  if (!stage.is_logit_layer() || inputs > ops::kMostConcatParts) return nullptr;
  return std::make_shared<ConcatLinear>(stage, inputs);
}

}  // namespace hctr
