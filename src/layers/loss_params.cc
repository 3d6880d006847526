#include "layers/loss_params.h"

#include "base/error.h"

namespace hctr {

template <>
const Words<LossLayer::Regularizer::Kind>& EnumWords<LossLayer::Regularizer::Kind>::table() {
  using Penalty = LossLayer::Regularizer::Kind;
  static const Words<Penalty> words = {{"L1", Penalty::l1}, {"L2", Penalty::l2}, {"None", Penalty::none}};
  return words;
}

LossLayer::Regularizer LossParams::regularizer() const { return {penalty, lambda.value_or(kDefaultLambda)}; }

void check_loss_fields(const LossParams& p, const std::string& pointer, Problems& problems) {
  if (p.lambda && p.penalty == LossLayer::Regularizer::Kind::none)
    problems.warn(pointer + "/lambda", "lambda has no effect without \"regularizer\"");
  if (!p.lambda && p.penalty != LossLayer::Regularizer::Kind::none)
    problems.note(pointer, cat("\"lambda\" is not given; ", kDefaultLambda, " is used"));
}

}  // namespace hctr
