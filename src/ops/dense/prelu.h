// ReLU with a trainable slope below zero.
#pragma once

#include <optional>

#include "core/device/op.h"

namespace hctr::ops {

/// y[b,c] = x < 0 ? alpha[c mod n] * x : x, for column c of a row and n slopes. n is 1 for a common slope, or the last
/// dimension for one slope per feature. Shapes: x and y equal, alpha [1, n], n divides the row length. Dtypes: f32 f16
/// bf16, equal. Source: K. He et al., "Delving Deep into Rectifiers", ICCV 2015.
HCTR_OP(void prelu(Context&, Tensor x, Tensor alpha, Tensor y))
/// dx = x < 0 ? alpha * dy : dy, if dx is given; d_alpha = sum of x * dy where x < 0, f32. Overwrites both.
HCTR_OP(void prelu_backward(Context&, Tensor x, Tensor alpha, Tensor dy, Tensor scratch, std::optional<Tensor> dx,
                            Tensor d_alpha))
TensorSpec prelu_scratch(int64_t rows, int64_t row_elements);

}  // namespace hctr::ops
