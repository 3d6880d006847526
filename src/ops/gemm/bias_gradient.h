// The bias gradient of a fully connected layer, fused with the gradient of the element-wise operation (such as ReLU)
// that follows the layer's GEMM.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// Arguments of a fused DReLU epilogue. An operator with this epilogue reads the output y = dropout(max(x W + bias, 0))
/// of a layer. The operator writes the gradient of x W + bias instead of the gradient of y, and the column sums of that
/// gradient. The members are arguments of relu_bias_gradient().
struct ReluEnd {
  float factor;
  Tensor d_bias;
  Tensor scratch;  ///< memory that gradient_through_relu_scratch() describes
};

/// Scratch memory of bias_gradient() and relu_bias_gradient() for `columns` columns.
TensorSpec bias_gradient_scratch(int64_t columns);

/// d_bias[j] = the sum of d_z[b, j] over rows b, in f32, in an order that depends on the shape only. Shapes: d_z [rows,
/// n], any row stride; d_bias [n]. Dtypes: d_z f32 f16 bf16; d_bias as d_z, or f32.
HCTR_OP(void bias_gradient(Context&, Tensor d_z, Tensor d_bias, Tensor scratch))

/// d_z = y > 0 ? factor * d_y : 0, rounded to its dtype, and d_bias as in bias_gradient(). With factor 1, d_z is the
/// gradient of y = max(z, 0). With factor 1 / (1 - rate), d_z is also the gradient of y = dropout(max(z, 0)): dropped
/// elements are 0 in y, and kept elements have the sign of z. Shapes: y, d_y, d_z [rows, n], any row strides. d_z may
/// be d_y. Dtypes: all three equal.
HCTR_OP(void relu_bias_gradient(Context&, float factor, Tensor y, Tensor d_y, Tensor d_z, Tensor d_bias,
                                Tensor scratch))

}  // namespace hctr::ops
