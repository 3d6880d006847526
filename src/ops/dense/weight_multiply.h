// Multiplies the value of each slot by a trainable vector of that slot.
#pragma once

#include <optional>

#include "core/device/op.h"

namespace hctr::ops {

/// y[b, s*dim + k] = x[b,s] * w[s,k]. Shapes: x [batch, slots], w [slots, dim] dense, y [batch, slots * dim]. Dtypes:
/// f32 f16 bf16, equal.
HCTR_OP(void weight_multiply(Context&, Tensor x, Tensor w, Tensor y))
/// dx[b,s] = sum_k dy * w, if dx is given; dw[s,k] = sum_b dy * x, f32 and dense. Overwrites both. If the context
/// collects launches (Context::last_launches()), dw is deferred to the end of the backward pass; until then x, dy and
/// `scratch` must not change.
HCTR_OP(void weight_multiply_backward(Context&, Tensor x, Tensor w, Tensor dy, Tensor scratch, std::optional<Tensor> dx,
                                      Tensor dw))
TensorSpec weight_multiply_scratch(int64_t batch, int64_t slots, int64_t dim);

}  // namespace hctr::ops
