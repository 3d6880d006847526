// Binary cross entropy of several labels per sample, some of which may be missing.
#pragma once

#include <vector>

#include "device/op.h"

namespace hctr::ops {

/// loss[0] = 1 / (global_samples * labels) * sum over this rank's valid rows b and labels j of
/// t[j] * (max(z, 0) - z y + log(1 + exp(-|z|))), where a label below -0.5 is missing and adds 0 (and still counts in
/// the divisor). probability = 1 / (1 + exp(-z)). Sums in a fixed order. Shapes: logits, label, probability [batch,
/// labels], t one weight per label, loss [1]. Dtypes: logits f32 f16 bf16; the others f32. Needs ctx.state(). Rows past
/// valid_samples count nothing; their probability is written all the same.
HCTR_OP(void multi_cross_entropy(Context&, Tensor logits, Tensor label, const std::vector<float>& t, Tensor loss,
                                 Tensor probability))
/// d_logits = weight * loss_scale * t[j] * (sigmoid(z) - y) / (global_samples * labels); 0 where the label is missing
/// and in rows past valid_samples. Overwrites d_logits.
HCTR_OP(void multi_cross_entropy_backward(Context&, Tensor logits, Tensor label, const std::vector<float>& t,
                                          float weight, Tensor d_logits))

}  // namespace hctr::ops
