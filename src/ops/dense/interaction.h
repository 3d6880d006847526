// Interaction: dot products of all pairs of a sample's vectors.
#pragma once

#include <optional>

#include "core/device/op.h"
#include "ops/common/loss_scale.h"
#include "ops/gemm/bias_gradient.h"

namespace hctr::ops {

/// A sample has m = n + 1 vectors: v_0 = dense[b], and v_1 .. v_n = slots[b]. A row of y is v_0, then <v_r, v_c> for
/// all r < c at position c(c-1)/2 + r, then one zero. The zero column makes weight files of the next layer compatible
/// with the original HugeCTR. Shapes: dense [batch, dim], slots [batch, n, dim], y [batch, dim + m(m-1)/2 + 1]. Dtypes:
/// f32 f16 bf16, equal. Source: M. Naumov et al., "Deep Learning Recommendation Model", arXiv 1906.00091, section 2.
HCTR_OP(void interaction(Context&, Tensor dense, Tensor slots, Tensor y))
/// d v_i = sum over j != i of dy(pair i j) v_j; d v_0 also gets the first columns of dy. Overwrites the given
/// gradients. With `search`, checks d_slots for overflow like find_overflow(). `below` describes the layer that wrote
/// `dense`. That layer must end with a ReLU, and `below` requires d_dense. With `below`, d_dense is the gradient before
/// that ReLU, and below->d_bias gets the column sums of d_dense. The results equal relu_bias_gradient() on d_dense,
/// except for the summation order.
HCTR_OP(void interaction_backward(Context&, Tensor dense, Tensor slots, Tensor dy, std::optional<Tensor> d_dense,
                                  std::optional<Tensor> d_slots, OverflowSearch search = {},
                                  std::optional<ReluEnd> below = {}))

}  // namespace hctr::ops
