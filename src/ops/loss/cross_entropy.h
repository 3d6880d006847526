// Cross entropy from logits, for one label, for two classes, and for several labels. All three are sums of one term,
//   c(z, y) = max(z, 0) - z y + log(1 + exp(-|z|)).
// The term equals -y log p - (1 - y) log(1 - p) with p = 1 / (1 + exp(-z)), but this form does not overflow.
//
// Common to all losses: loss[0] is this rank's part of the mean over the global batch; the sum over ranks is the mean.
// Sums have a fixed order. The rows valid_samples, valid_samples + 1 and so on have no sample: they do not change the
// loss and have gradient 0, but get a probability. If global_samples is 0, the loss is 0. A term is multiplied by its
// sample's weight, and by `positive` if its label is at least 0.5. The divisor of the mean is the number of samples,
// regardless of weights. If the batch was drawn with negative downsampling (state.log_negative_share < 0), the loss and
// its gradient use z - log_negative_share in place of z; the probability uses z. Dtypes: logits and d_logits f32 f16
// bf16; label, loss and probability f32. Errors: Error(bug) if shapes, dtypes or devices disagree, or without
// ctx.state().
#pragma once

#include <optional>
#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

struct TermWeights {
  std::optional<Tensor> samples{};  ///< f32 [batch, 1] weight of each sample; none: all weights are 1
  float positive = 1;
};

/// The output of binary_cross_entropy_backward(), computed in the same pass as the loss.
struct LogitGradient {
  Tensor d_logits;
  float weight;
};

/// loss[0] = 1 / global_samples * sum over valid rows of c(z, y); probability = 1 / (1 + exp(-z)). With `gradient`,
/// also computes d_logits, bitwise equal to binary_cross_entropy_backward(). Shapes: logits, label, probability and
/// d_logits [batch, 1], loss [1].
HCTR_OP(void binary_cross_entropy(Context&, Tensor logits, Tensor label, Tensor loss, Tensor probability,
                                  const TermWeights& = {}, const std::optional<LogitGradient>& gradient = {}))
/// d_logits = weight * loss_scale * (probability - y) / global_samples. Overwrites d_logits.
HCTR_OP(void binary_cross_entropy_backward(Context&, Tensor logits, Tensor label, float weight, Tensor d_logits,
                                           const TermWeights& = {}))

/// loss[0] = 1 / global_samples * sum over valid rows of -log softmax(z)[k] = c(z_1 - z_0, k), where k = 1 if the label
/// is at least 0.5, else 0; probability = softmax(z)[1]. Shapes: logits [batch, 2], label and probability [batch, 1],
/// loss [1].
HCTR_OP(void two_class_cross_entropy(Context&, Tensor logits, Tensor label, Tensor loss, Tensor probability,
                                     const TermWeights& = {}))
/// d_logits = weight * loss_scale * (softmax(z) - one-hot of k) / global_samples. Overwrites d_logits.
HCTR_OP(void two_class_cross_entropy_backward(Context&, Tensor logits, Tensor label, float weight, Tensor d_logits,
                                              const TermWeights& = {}))

/// loss[0] = 1 / (global_samples * labels) * sum over valid rows and labels j of t[j] * c(z, y); probability = 1 / (1 +
/// exp(-z)). A label below -0.5 is missing. A missing label adds 0, and the divisor still counts it. Shapes: logits,
/// label and probability [batch, labels], t has one weight per label, loss [1].
HCTR_OP(void multi_cross_entropy(Context&, Tensor logits, Tensor label, const std::vector<float>& t, Tensor loss,
                                 Tensor probability, const TermWeights& = {}))
/// d_logits = weight * loss_scale * t[j] * (probability - y) / (global_samples * labels); 0 for a missing label.
/// Overwrites d_logits.
HCTR_OP(void multi_cross_entropy_backward(Context&, Tensor logits, Tensor label, const std::vector<float>& t,
                                          float weight, Tensor d_logits, const TermWeights& = {}))

}  // namespace hctr::ops
