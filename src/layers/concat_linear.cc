#include "layers/concat_linear.h"

#include "ops/bias_gradient.h"
#include "ops/concat_linear.h"
#include "ops/linear.h"

namespace hctr {
namespace {

class ConcatLinear : public Layer {
 public:
  explicit ConcatLinear(FullyConnected stage) : stage_(stage) {}

  LayerSpec spec(const Specs& inputs) const override {
    int64_t width = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      need_rank(inputs[i], 2, cat("bottom/", i), "Concat");
      width += inputs[i].shape[1];
    }
    LayerSpec spec{.outputs = {TensorSpec(inputs[0].dtype, {inputs[0].rows(), 1})}};
    stage_.add_weights(width, "", spec.weights);
    if (stage_.use_bias) spec.scratch.push_back(ops::bias_gradient_scratch(1));
    return spec;
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::concat_linear(ctx, io.in, io.weights[0], stage_.use_bias ? std::optional(io.weights[1]) : std::nullopt,
                       io.out[0]);
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    std::vector<int64_t> widths;
    for (const Tensor& x : io.in) widths.push_back(x.dim(1));
    ops::concat_linear_backward(ctx, io.weights[0], io.d_out[0], widths, io.d_in);
  }

  void backward_weights(Context& ctx, const LayerIo& io) const override {
    int64_t begin = 0;
    for (const Tensor& x : io.in) {
      ops::matmul(ctx, x, ops::Transpose::yes, io.d_out[0], ops::Transpose::no,
                  io.d_weights[0].row_range(begin, begin + x.dim(1)));
      begin += x.dim(1);
    }
    if (stage_.use_bias) ops::bias_gradient(ctx, io.d_out[0], io.d_weights[1], io.scratch[0]);
  }

 private:
  FullyConnected stage_;
};

}  // namespace

std::shared_ptr<const Layer> concat_linear(const FullyConnected& stage, size_t inputs) {
  if (stage.num_output != 1 || stage.activation != StageActivation::none || stage.dropout_rate > 0 ||
      inputs > ops::kMostConcatParts)
    return nullptr;
  return std::make_shared<ConcatLinear>(stage);
}

}  // namespace hctr
