// Binary cross entropy from logits.
#pragma once

#include "device/op.h"

namespace hctr::ops {

/// loss[0] = 1 / global_samples * sum over this rank's valid rows of max(z, 0) - z*y + log(1 + exp(-|z|)); over all
/// ranks these add up to the mean of the global batch. probability = 1 / (1 + exp(-z)). Sums in a fixed order. Shapes:
/// logits [batch, 1], label [batch, 1], loss [1], probability [batch, 1]. Dtypes: logits f32 f16 bf16; the others f32.
/// Needs ctx.state() for valid_samples and global_samples. Rows past valid_samples count nothing; their probability is
/// written all the same. Without any sample (global_samples 0) the loss is 0.
HCTR_OP(void binary_cross_entropy(Context&, Tensor logits, Tensor label, Tensor loss, Tensor probability))
/// d_logits = weight * loss_scale * (sigmoid(z) - y) / global_samples in valid rows, 0 in the others. Overwrites
/// d_logits.
HCTR_OP(void binary_cross_entropy_backward(Context&, Tensor logits, Tensor label, Tensor d_logits, float weight = 1))

}  // namespace hctr::ops
