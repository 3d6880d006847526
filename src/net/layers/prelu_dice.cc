// PReLU_Dice: an activation with slope alpha below the batch mean and slope 1 above it. The batch variance determines
// the width of the smooth transition.
#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "ops/dense/dice.h"

namespace hctr {
namespace {

struct DiceParams {
  Compatibility compatibility;
  double alpha = 0, epsilon = 0;
};

class PReLUDice : public Layer {
 public:
  PReLUDice(const std::string&, DiceParams params)
      : alpha_(static_cast<float>(params.alpha)),
        eps_(static_cast<float>(params.epsilon)),
        over_ranks_(!params.compatibility.batch_norm_per_gpu) {}

  LayerSpec spec(const Specs& inputs) const override {
    need_rank(inputs[0], 2, "bottom", "PReLU_Dice");
    const int64_t n = inputs[0].shape[1];
    return {.outputs = {TensorSpec(inputs[0].dtype, inputs[0].shape)},
            .scratch = {ops::column_sums_scratch(n), TensorSpec(DType::f32, {n + 1}), TensorSpec(DType::f32, {2, n}),
                        TensorSpec(DType::f32, {2, n})}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    const Tensor &start = io.scratch[1], &batch = io.scratch[2];
    ops::dice_start(ctx, io.in[0], start);
    if (over_ranks_) io.sum_over_ranks(ctx, start);
    ops::dice_sums(ctx, io.in[0], start, io.scratch[0], batch);
    if (over_ranks_) io.sum_over_ranks(ctx, batch);
    ops::dice_statistics(ctx, start, eps_, batch);
    ops::dice(ctx, io.in[0], alpha_, batch, io.out[0]);
  }

  void to_onnx(OnnxGraph&, const OnnxIo&) const override {
    throw LayerError("type",
                     "PReLU_Dice uses the mean and variance of the batch in evaluation too, so the score of a row "
                     "depends on the batch, and an exported graph would score a single row differently; use PReLU, "
                     "or BatchNorm, which keeps running statistics");
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (!io.d_in[0]) return;
    const Tensor &start = io.scratch[1], &batch = io.scratch[2], &d_sums = io.scratch[3];
    ops::dice_backward_sums(ctx, io.in[0], io.d_out[0], alpha_, batch, io.scratch[0], d_sums);
    if (over_ranks_) io.sum_over_ranks(ctx, d_sums);
    ops::dice_backward(ctx, io.in[0], io.d_out[0], alpha_, start, batch, d_sums, *io.d_in[0]);
  }

 private:
  float alpha_, eps_;
  bool over_ranks_;
};

}  // namespace

LayerType prelu_dice() {
  using P = DiceParams;
  return LayerType::of<PReLUDice>("PReLU_Dice",
                                  "y = p x + (1 - p) alpha x, p = sigmoid((x - mean) / sqrt(var + epsilon)) with the "
                                  "mean and variance of the column over the whole batch, in evaluation too",
                                  {1, 1}, {1, 1},
                                  Schema<P>("PReLU_Dice", "prelu_dice_param")
                                      .need("alpha", &P::alpha, "slope below zero")
                                      .need("epsilon", &P::epsilon, "added to the variance", more_than(0)));
}

}  // namespace hctr
