// The fields of a loss clause that ask for a penalty on the dense weights.
#pragma once

#include <optional>

#include "config/schema.h"
#include "layers/layer.h"

namespace hctr {

template <>
struct EnumWords<LossLayer::Regularizer::Kind> {
  static const std::vector<std::pair<std::string, LossLayer::Regularizer::Kind>>& table();
};

struct RegularizerParams {
  LossLayer::Regularizer::Kind kind = LossLayer::Regularizer::Kind::none;
  std::optional<double> lambda;
  LossLayer::Regularizer regularizer() const;
};

/// The strength when a clause names a regularizer and no lambda.
inline constexpr double kDefaultLambda = 1e-5;

/// Adds the fields "regularizer" and "lambda".
Schema<RegularizerParams> regularized(Schema<RegularizerParams>);

}  // namespace hctr
