// The element-wise operators of a cross layer in matrix form (DCN v2).
#pragma once

#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

/// y = x * t + skip, element by element: the last operation of a cross layer in matrix form.
HCTR_OP(void cross_gate(Context&, Tensor x, Tensor t, Tensor skip, Tensor y))

/// d_t = d_y * x, rounded to its dtype. d_bias[j] = the sum of d_t[b, j] over rows b, in f32, in an order that depends
/// on the shape only. Shapes: x, d_y, d_t [rows, n], any row strides; d_bias [n]; scratch as bias_gradient_scratch(n).
/// Dtypes: x, d_y, d_t f32 f16 bf16, equal; d_bias the same, or f32.
HCTR_OP(void cross_gate_backward(Context&, Tensor x, Tensor d_y, Tensor d_t, Tensor d_bias, Tensor scratch))

/// The tensors t_l and the gradients d_y_l of y_{l+1} for the layers y_{l+1} = x * t_l + y_l, with y_0 = x. Ordered by
/// layer; at most kMostCrossLayers.
struct CrossGates {
  std::vector<Tensor> t, d_y;
};

/// cross_gate_backward() for the first layer. The same pass computes the gradient of x over all layers, except the part
/// through t_0: d_x = d_y[0] + sum over l of d_y[l] * t[l], added in f32 from the last layer to the first. d_x may be
/// one of the t[l].
HCTR_OP(void first_cross_gate_backward(Context&, Tensor x, CrossGates gates, Tensor d_t, Tensor d_bias, Tensor scratch,
                                       Tensor d_x))

/// Computes only d_x of first_cross_gate_backward().
HCTR_OP(void cross_gates_gradient(Context&, CrossGates gates, Tensor d_x))

}  // namespace hctr::ops
