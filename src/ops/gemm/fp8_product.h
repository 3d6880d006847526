// GEMMs with FP8 operands: the cast of wider tensors to FP8, and the GEMM.
#pragma once

#include <optional>

#include "ops/gemm/fp8_scaling.h"

namespace hctr::ops {

/// Rounds up to a multiple of 16, the unit of FP8 tensor core instructions.
constexpr int64_t fp8_padded(int64_t n) { return (n + 15) / 16 * 16; }

/// A matrix of FP8 codes. A row has fp8_padded(columns) codes, and there are fp8_padded(rows) rows; the padding is
/// zeros.
struct Fp8Matrix {
  std::byte* codes;
  int64_t rows, columns;
  Fp8Format format;
  const Fp8Scale* scale;  ///< value = code * scale->inverse

  static constexpr int64_t bytes(int64_t rows, int64_t columns) { return fp8_padded(rows) * fp8_padded(columns); }
};

/// Side of the square tiles that a kernel casts. Each tile has its own column sums.
inline constexpr int kFp8Tile = 128;

/// Throws Error(device) if the device of the context has no FP8. The message names the alternatives.
HCTR_OP(void expect_fp8(Context&))

/// Casts x to FP8 with scaling.scale, plain and transposed, in one pass. Raises *scaling.amax to the largest magnitude
/// of x. Shapes: x [m, n], any row stride; rows: memory for Fp8Matrix::bytes(m, n), or null; transposed: memory for
/// Fp8Matrix::bytes(n, m), or null. Dtypes: f32 f16 bf16. `samples`: whether the rows of x are the rows of the batch;
/// if so, amax excludes rows without a sample.
HCTR_OP(void fp8_cast(Context&, Tensor x, bool samples, const Fp8Scaling& scaling, std::byte* rows,
                      std::byte* transposed))

/// Epilogue that turns the gradient of a layer's output into the gradient of x W + bias.
struct Fp8GradientEnd {
  /// the output y = dropout(max(x W + bias, 0)); none: the layer's output is x W + bias itself
  std::optional<Tensor> y{};
  float factor = 1;  ///< dropout_scale(), or 1
  std::optional<Tensor> d_bias{}, scratch{};
};
/// Scratch memory of fp8_cast_gradient() with a bias.
TensorSpec fp8_gradient_scratch(const TensorSpec& d_y);

/// Casts d_z to FP8, like fp8_cast(), where d_z = y > 0 ? factor * d_y : 0. If `end` has no y, d_z = d_y. d_bias = the
/// column sums of d_z in f32, in a fixed order. d_z is rounded once, to FP8. Shapes: d_y, y [m, n], any row strides;
/// d_bias [n], dense. Dtypes: y as d_y; d_bias f32.
HCTR_OP(void fp8_cast_gradient(Context&, Tensor d_y, const Fp8GradientEnd& end, const Fp8Scaling& scaling,
                               std::byte* rows, std::byte* transposed))

/// Views the output of fp8_cast() as a matrix.
inline Fp8Matrix fp8_rows(const Tensor& x, const Fp8Scaling& scaling, std::byte* codes) {
  return {codes, x.dim(0), x.dim(1), scaling.format, scaling.scale};
}
inline Fp8Matrix fp8_transposed(const Tensor& x, const Fp8Scaling& scaling, std::byte* codes) {
  return {codes, x.dim(1), x.dim(0), scaling.format, scaling.scale};
}

/// Whether fp8_product() can write c. The number of its columns must be a multiple of 16, with or without its
/// zero_columns.
bool takes_fp8_product(const Tensor& c);

/// c = a b^T + bias, or max(a b^T + bias, 0) if `relu`; accumulated in f32, c rounded once. Shapes: a [m, k], b [n, k],
/// bias [n], c [m, n], any row stride, takes_fp8_product(c); with a bias, n is a multiple of 16. At most one operand
/// may be e5m2. Dtypes: c and bias bf16; or c f32, without a bias.
HCTR_OP(void fp8_product(Context&, const Fp8Matrix& a, const Fp8Matrix& b, std::optional<Tensor> bias, bool relu,
                         Tensor c))

}  // namespace hctr::ops
