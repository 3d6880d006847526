// PReLU_Dice: a leaky rectifier whose step follows the batch's mean and variance.
#include "layers/layer_type.h"
#include "ops/dice.h"

namespace hctr {
namespace {

struct DiceParams {
  double alpha = 0, epsilon = 0;
};

class PReLUDice : public Layer {
 public:
  PReLUDice(const std::string&, DiceParams params) : alpha_(static_cast<float>(params.alpha)), eps_(static_cast<float>(params.epsilon)) {}

  LayerPlan plan(const Specs& inputs) const override {
    need_rank(inputs[0], 2, "bottom", "PReLU_Dice");
    const int64_t n = inputs[0].shape[1];
    return {.outputs = {TensorSpec(inputs[0].dtype, inputs[0].shape)},
            .scratch = {ops::column_sums_scratch(n), TensorSpec(DType::f32, {2, n}), TensorSpec(DType::f32, {2, n})}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::dice_statistics(ctx, io.in[0], eps_, io.scratch[0], io.scratch[1]);
    ops::dice(ctx, io.in[0], alpha_, io.scratch[1], io.out[0]);
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (!io.d_in[0]) return;
    ops::dice_backward_sums(ctx, io.in[0], io.d_out[0], alpha_, io.scratch[1], io.scratch[0], io.scratch[2]);
    ops::dice_backward(ctx, io.in[0], io.d_out[0], alpha_, io.scratch[1], io.scratch[2], *io.d_in[0]);
  }

 private:
  float alpha_, eps_;
};

}  // namespace

LayerType prelu_dice() {
  using P = DiceParams;
  return LayerType::of<PReLUDice>("PReLU_Dice",
                                  "y = p x + (1 - p) alpha x, p = sigmoid((x - mean) / sqrt(var + epsilon)) with the mean and variance of the batch's column",
                                  {1, 1}, {1, 1},
                                  Schema<P>("PReLU_Dice", "prelu_dice_param")
                                      .need("alpha", &P::alpha, "slope on the lower side")
                                      .need("epsilon", &P::epsilon, "added to the variance", more_than(0)));
}

}  // namespace hctr
