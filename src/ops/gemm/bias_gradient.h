// The gradient of a bias, in one pass with the element-wise backward between a fully connected layer's output and its
// GEMM.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// The epilogue of a fully connected layer with ReLU, y = dropout(max(x W + bias, 0)), for an operator that reads y and
/// writes the gradient of x W + bias instead of that of y, and its sums: the arguments of relu_bias_gradient().
struct ReluEnd {
  float factor;
  Tensor d_bias;
  Tensor scratch;  ///< gradient_through_relu_scratch()
};

/// Scratch memory of the operators below for this many columns.
TensorSpec bias_gradient_scratch(int64_t columns);

/// d_bias[j] = sum over rows of d_z[., j], in f32 and in an order that depends on the shape alone.
/// Shapes: d_z [rows, n], any row stride; d_bias [n]. Dtypes: d_z f32 f16 bf16; d_bias as d_z, or f32.
HCTR_OP(void bias_gradient(Context&, Tensor d_z, Tensor d_bias, Tensor scratch))

/// d_z = y > 0 ? factor * d_y : 0, rounded to its dtype, and d_bias as above.
/// That is the gradient of y = max(z, 0), and with factor 1 / (1 - rate) the gradient of dropout after it as well: an
/// element that dropout set to zero is zero in y, and one that it kept has the sign that it had.
/// Shapes: y, d_y, d_z [rows, n], any row strides. d_z may be d_y. Dtypes: all three alike.
HCTR_OP(void relu_bias_gradient(Context&, float factor, Tensor y, Tensor d_y, Tensor d_z, Tensor d_bias,
                                Tensor scratch))

}  // namespace hctr::ops
