#include "net/layers/loss_params.h"

#include "core/base/expect.h"
#include "ops/common/fill.h"

namespace hctr {

template <>
const Words<LossLayer::Regularizer::Kind>& EnumWords<LossLayer::Regularizer::Kind>::table() {
  using Penalty = LossLayer::Regularizer::Kind;
  static const Words<Penalty> words = {{"L1", Penalty::l1}, {"L2", Penalty::l2}, {"None", Penalty::none}};
  return words;
}

LossLayer::Regularizer LossParams::regularizer() const { return {penalty, lambda.value_or(kDefaultLambda)}; }

ops::TermWeights term_weights(const LossParams& params, const LayerIo& io) {
  return {io.in.size() > 2 ? std::optional(io.in[2]) : std::nullopt, static_cast<float>(params.positive_weight)};
}

void expect_sample_weights(const Specs& inputs, const std::string& layer_type) {
  if (inputs.size() > 2 && (inputs[2].shape != Shape{inputs[0].rows(), 1} || inputs[2].dtype != DType::f32))
    throw LayerError("bottom/2",
                     cat(layer_type, " takes sample weights as one f32 column of shape ",
                         to_string(Shape{inputs[0].rows(), 1}), ", found shape ", to_string(inputs[2].shape),
                         inputs[2].dtype == DType::f32 ? "" : " of two bytes per element",
                         ": use \"sample_weight\" of the Data layer"));
}

void write_no_gradients(Context& ctx, const LayerIo& io) {
  for (size_t i = 1; i < io.d_in.size(); ++i)
    if (io.d_in[i]) ops::fill(ctx, 0, *io.d_in[i]);
}

void check_loss_fields(const LossParams& p, const std::string& pointer, Problems& problems) {
  if (p.lambda && p.penalty == LossLayer::Regularizer::Kind::none)
    problems.warn(pointer + "/lambda", "lambda has no effect without \"regularizer\"");
  if (!p.lambda && p.penalty != LossLayer::Regularizer::Kind::none)
    problems.note(pointer, cat("\"lambda\" is not given; ", kDefaultLambda, " is used"));
}

}  // namespace hctr
