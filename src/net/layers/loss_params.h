// The fields of every loss section: the weight of the loss, and a penalty on the dense weights.
#pragma once

#include <optional>

#include "config/schema.h"
#include "net/layers/layer.h"
#include "ops/loss/cross_entropy.h"

namespace hctr {

template <>
const Words<LossLayer::Regularizer::Kind>& EnumWords<LossLayer::Regularizer::Kind>::table();

struct LossParams {
  LossLayer::Regularizer::Kind penalty = LossLayer::Regularizer::Kind::none;
  std::optional<double> lambda;
  double loss_weight = 1, positive_weight = 1;
  LossLayer::Regularizer regularizer() const;
};

/// The factors by which the terms of a loss are multiplied: `positive_weight` and, if the layer has a third input, that
/// input.
ops::TermWeights term_weights(const LossParams&, const LayerIo&);
/// Throws LayerError unless the third input, if present, has one element for each row of the first input.
void expect_sample_weights(const Specs& inputs, const std::string& layer_type);
/// Writes zeros as the gradients of labels and sample weights, which are not trained.
void write_no_gradients(Context&, const LayerIo&);

/// The default `lambda` for a section with a regularizer.
inline constexpr double kDefaultLambda = 1e-5;

/// Checks rules that involve several fields of LossParams.
void check_loss_fields(const LossParams&, const std::string& pointer, Problems&);

/// Adds the fields "regularizer", "lambda", "loss_weight" and "positive_weight" to the schema of P, which derives from
/// LossParams.
template <class P>
Schema<P> regularized(Schema<P> schema) {
  return schema
      .opt("regularizer", &P::penalty,
           "penalty on all dense weights: L2 adds lambda / (2 batch) * sum w^2, L1 adds lambda / batch * sum |w|")
      .opt("lambda", &P::lambda, cat("strength of the penalty; default: ", kDefaultLambda), at_least(0))
      .opt("loss_weight", &P::loss_weight,
           "factor of this loss in the sum of all losses; the factor does not "
           "apply to the penalty",
           more_than(0))
      .alias("weight")
      .opt("positive_weight", &P::positive_weight,
           "weight of loss terms whose label is at least 0.5; multiplied with the sample's weight", more_than(0))
      .together([](P& p, const std::string& pointer, Problems& problems) { check_loss_fields(p, pointer, problems); });
}

}  // namespace hctr
