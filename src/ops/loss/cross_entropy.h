// Cross entropy from logits: of one label, of two classes, and of several labels. All three are sums of one term,
//   c(z, y) = max(z, 0) - z y + log(1 + exp(-|z|)),
// which is -y log p - (1 - y) log(1 - p) with p = 1 / (1 + exp(-z)) and does not overflow.
//
// All of them: loss[0] is this rank's part of the mean over the global batch; the parts of all ranks add up to it. Sums
// are made in a fixed order. Rows past valid_samples add nothing to the loss and have gradient 0; their probability is
// written all the same. Without any sample (global_samples 0) the loss is 0.
// A term counts as often as its sample's weight says, times `positive` where the label is 0.5 or more; the divisor is
// the number of samples whatever they weigh.
// Where the batch was drawn with fewer samples of label 0 (state.log_negative_share below 0), c takes z minus that in
// the place of z, in the loss and its gradient; the probability stays that of z. Dtypes: logits and d_logits f32 f16
// bf16; label, loss and probability f32. Errors: Error(bug) if shapes, dtypes or devices do not fit, or without
// ctx.state().
#pragma once

#include <optional>
#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

struct TermWeights {
  std::optional<Tensor> samples{};  ///< f32 [batch, 1]; none: 1 each
  float positive = 1;
};

/// Outputs of binary_cross_entropy_backward(), written by the pass that computes the loss.
struct LogitGradient {
  Tensor d_logits;
  float weight;
};

/// loss[0] = 1 / global_samples * sum over valid rows of c(z, y); probability = 1 / (1 + exp(-z)). With `gradient` also
/// that, equal bit for bit.
/// Shapes: logits, label, probability and d_logits [batch, 1], loss [1].
HCTR_OP(void binary_cross_entropy(Context&, Tensor logits, Tensor label, Tensor loss, Tensor probability,
                                  const TermWeights& = {}, const std::optional<LogitGradient>& gradient = {}))
/// d_logits = weight * loss_scale * (probability - y) / global_samples. Overwrites d_logits.
HCTR_OP(void binary_cross_entropy_backward(Context&, Tensor logits, Tensor label, float weight, Tensor d_logits,
                                           const TermWeights& = {}))

/// loss[0] = 1 / global_samples * sum over valid rows of -log softmax(z)[k] = c(z_1 - z_0, k), k = 1 where the label is
/// 0.5 or more, else 0; probability = softmax(z)[1].
/// Shapes: logits [batch, 2], label and probability [batch, 1], loss [1].
HCTR_OP(void two_class_cross_entropy(Context&, Tensor logits, Tensor label, Tensor loss, Tensor probability,
                                     const TermWeights& = {}))
/// d_logits = weight * loss_scale * (softmax(z) - one-hot of k) / global_samples. Overwrites d_logits.
HCTR_OP(void two_class_cross_entropy_backward(Context&, Tensor logits, Tensor label, float weight, Tensor d_logits,
                                              const TermWeights& = {}))

/// loss[0] = 1 / (global_samples * labels) * sum over valid rows and labels j of t[j] * c(z, y); a label below -0.5 is
/// missing: it adds 0 and still counts in the divisor. probability = 1 / (1 + exp(-z)).
/// Shapes: logits, label and probability [batch, labels], t one weight per label, loss [1].
HCTR_OP(void multi_cross_entropy(Context&, Tensor logits, Tensor label, const std::vector<float>& t, Tensor loss,
                                 Tensor probability, const TermWeights& = {}))
/// d_logits = weight * loss_scale * t[j] * (probability - y) / (global_samples * labels); 0 where the label is missing.
/// Overwrites d_logits.
HCTR_OP(void multi_cross_entropy_backward(Context&, Tensor logits, Tensor label, const std::vector<float>& t,
                                          float weight, Tensor d_logits, const TermWeights& = {}))

}  // namespace hctr::ops
