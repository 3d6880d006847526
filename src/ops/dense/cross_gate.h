// The element-wise operators of a cross layer in matrix form (DCN v2).
#pragma once

#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

/// y = x * t + skip, element by element: the last step of a layer in matrix form.
HCTR_OP(void cross_gate(Context&, Tensor x, Tensor t, Tensor skip, Tensor y))

/// d_t = d_y * x, rounded to its dtype, and d_bias[j] = the sum over rows of d_t[., j], in f32 and in an order that
/// depends on the shape alone. Shapes: x, d_y, d_t [rows, n], any row strides; d_bias [n]; scratch as
/// bias_gradient_scratch(n). Dtypes: x, d_y, d_t f32 f16 bf16, alike; d_bias as they, or f32.
HCTR_OP(void cross_gate_backward(Context&, Tensor x, Tensor d_y, Tensor d_t, Tensor d_bias, Tensor scratch))

/// Layers y_{l+1} = x * t_l + y_l in order, at most kMostCrossLayers: t_l and the gradient of y_{l+1}. y_0 is x.
struct CrossGates {
  std::vector<Tensor> t, d_y;
};

/// The same for the first layer, and in the same pass all layers' contributions to the gradient of x, except through
/// t_0: d_x = d_y[0] + sum over l of d_y[l] * t[l], in f32 from the last layer to the first. d_x may be a t[l].
HCTR_OP(void first_cross_gate_backward(Context&, Tensor x, CrossGates gates, Tensor d_t, Tensor d_bias, Tensor scratch,
                                       Tensor d_x))

/// Gradient of x summed over all layers: d_x as above.
HCTR_OP(void cross_gates_gradient(Context&, CrossGates gates, Tensor d_x))

}  // namespace hctr::ops
