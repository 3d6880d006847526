// Dot products of all pairs of a sample's vectors.
#pragma once

#include <optional>

#include "core/device/op.h"
#include "ops/common/loss_scale.h"
#include "ops/gemm/bias_gradient.h"

namespace hctr::ops {

/// The vectors of a sample are v_0 = dense[b] and v_1 .. v_n = slots[b], m = n + 1 of them. A row of y is v_0, then
/// <v_r, v_c> for all r < c at position c(c-1)/2 + r, then one zero: the original has this column too, so weight files
/// of the next layer fit. Shapes: dense [batch, dim], slots [batch, n, dim], y [batch, dim + m(m-1)/2 + 1]. Dtypes: f32
/// f16 bf16, alike. Source: M. Naumov et al., "Deep Learning Recommendation Model", arXiv 1906.00091, section 2.
HCTR_OP(void interaction(Context&, Tensor dense, Tensor slots, Tensor y))
/// d v_i = sum over j != i of dy(pair i j) v_j, and for v_0 also the first columns of dy. Overwrites the given
/// gradients. Checks d_slots for overflow, as find_overflow does, if it is given. `below`, only with d_dense: the layer
/// that wrote `dense` and ends with ReLU. d_dense then gets the gradient before that layer's ReLU, and below->d_bias
/// its column sums: the same as relu_bias_gradient() on d_dense, except for the order of sums.
HCTR_OP(void interaction_backward(Context&, Tensor dense, Tensor slots, Tensor dy, std::optional<Tensor> d_dense,
                                  std::optional<Tensor> d_slots, OverflowSearch search = {},
                                  std::optional<ReluEnd> below = {}))

}  // namespace hctr::ops
