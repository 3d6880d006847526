// Cross entropy of two classes, each with its own logit.
#pragma once

#include "device/op.h"

namespace hctr::ops {

/// loss[0] = 1 / global_samples * sum over this rank's valid rows of -log softmax(z)[k], k = 1 where the label is 0.5
/// or more, else 0; probability = softmax(z)[1]. With d = z_1 - z_0 these are max(d, 0) - d k + log(1 + exp(-|d|)) and
/// 1 / (1 + exp(-d)), which do not overflow. Sums in a fixed order.
/// Shapes: logits [batch, 2], label [batch, 1], loss [1], probability [batch, 1]. Dtypes: logits f32 f16 bf16; the
/// others f32. Needs ctx.state(). Rows past valid_samples count nothing; their probability is written all the same.
/// Without any sample the loss is 0.
HCTR_OP(void two_class_cross_entropy(Context&, Tensor logits, Tensor label, Tensor loss, Tensor probability))
/// d_logits = weight * loss_scale * (softmax(z) - one-hot of k) / global_samples in valid rows, 0 in the others.
/// Overwrites d_logits.
HCTR_OP(void two_class_cross_entropy_backward(Context&, Tensor logits, Tensor label, float weight, Tensor d_logits))

}  // namespace hctr::ops
