#include "layers/regularizer.h"

#include "base/error.h"

namespace hctr {

const std::vector<std::pair<std::string, LossLayer::Regularizer::Kind>>& EnumWords<LossLayer::Regularizer::Kind>::table() {
  using Penalty = LossLayer::Regularizer::Kind;
  static const std::vector<std::pair<std::string, Penalty>> words = {
      {"L1", Penalty::l1}, {"L2", Penalty::l2}, {"None", Penalty::none}};
  return words;
}

LossLayer::Regularizer RegularizerParams::regularizer() const { return {kind, lambda.value_or(kDefaultLambda)}; }

Schema<RegularizerParams> regularized(Schema<RegularizerParams> schema) {
  using P = RegularizerParams;
  return schema.opt("regularizer", &P::kind, "penalty on every dense weight: L2 adds lambda / (2 batch) * sum w^2, L1 lambda / batch * sum |w|")
      .opt("lambda", &P::lambda, cat("strength of the penalty; left out: ", kDefaultLambda), at_least(0))
      .together([](P& p, const std::string& pointer, Problems& problems) {
        if (p.lambda && p.kind == LossLayer::Regularizer::Kind::none)
          problems.warn(pointer + "/lambda", "lambda has no effect without \"regularizer\"");
        if (!p.lambda && p.kind != LossLayer::Regularizer::Kind::none)
          problems.note(pointer, cat("\"lambda\" is not given; ", kDefaultLambda, " is used"));
      });
}

}  // namespace hctr
