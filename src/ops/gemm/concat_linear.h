// A fully connected layer with one output, whose input is the concatenation of several tensors. The concatenation is
// not materialized.
#pragma once

#include <optional>
#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

inline constexpr size_t kMostConcatParts = 8;

/// y = [x_0 | x_1 | ...] w + bias, accumulated in f32. Reads the inputs without concatenating them, with wide loads at
/// any column offset. Shapes: x_p [batch, n_p], at most kMostConcatParts inputs; w [sum of n_p, 1]; bias [1]; y [batch,
/// 1]. Dtypes: f32 f16 bf16, all equal.
HCTR_OP(void concat_linear(Context&, const std::vector<Tensor>& x, Tensor w, std::optional<Tensor> bias, Tensor y))

/// One input x of concat_linear_backward().
struct ConcatLinearInput {
  /// Fused DReLU: for x = dropout(max(z, 0)), d_x gets the gradient of z instead of the gradient of x. `factor` is
  /// dropout_scale(), or 1. d_bias [n] gets the column sums of the gradient of z.
  struct BelowRelu {
    float factor;
    Tensor d_bias;
  };
  Tensor x;
  std::optional<Tensor> d_x;              ///< absent: not requested
  std::optional<BelowRelu> below_relu{};  ///< requires d_x
};

/// Scratch memory of concat_linear_backward() for inputs of these widths.
TensorSpec concat_linear_scratch(int64_t rows, const std::vector<int64_t>& widths);

/// All gradients of concat_linear(), in one pass over each input if the device supports it. d_x_p = d_y w_p^T; with
/// below_relu, d_x_p = x_p > 0 ? factor d_y w_p^T : 0. d_w = [x_0 | x_1 | ...]^T d_y; d_bias = the sum of d_y.
/// Overwrites all gradients. The order of sums over rows depends on the shapes only. Shapes: as in concat_linear(), d_w
/// like w, any row strides. Dtypes: x, d_x, w, d_y f32 f16 bf16, all equal; wgrads and bias gradients the same, or all
/// f32.
HCTR_OP(void concat_linear_backward(Context&, Tensor w, Tensor d_y, const std::vector<ConcatLinearInput>& inputs,
                                    Tensor d_w, std::optional<Tensor> d_bias, Tensor scratch))

}  // namespace hctr::ops
