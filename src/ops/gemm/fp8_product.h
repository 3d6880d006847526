// GEMMs with FP8 operands: conversion of wider tensors, and the GEMM.
#pragma once

#include <optional>

#include "ops/gemm/fp8_scaling.h"

namespace hctr::ops {

/// A multiple of 16: the hardware multiplies FP8 in such pieces.
constexpr int64_t fp8_padded(int64_t n) { return (n + 15) / 16 * 16; }

/// A matrix of codes. Rows are fp8_padded(columns) apart; what lies after each row, and fp8_padded(rows) - rows rows
/// after the last, is zero.
struct Fp8Matrix {
  std::byte* codes;
  int64_t rows, columns;
  Fp8Format format;
  const Fp8Scale* scale;  ///< the scale whose inverse turns codes back into numbers

  static constexpr int64_t bytes(int64_t rows, int64_t columns) { return fp8_padded(rows) * fp8_padded(columns); }
};

/// A kernel rounds tiles of this many rows and columns, and sums columns over this many rows.
inline constexpr int kFp8Tile = 128;

/// Errors: Error(device) that says what works instead, unless the device of the context has FP8.
HCTR_OP(void expect_fp8(Context&))

/// x as FP8 by scaling.scale, as it is and transposed, in one pass; raises *scaling.amax.
/// Shapes: x [m, n], any row stride; rows: memory for Fp8Matrix::bytes(m, n), or null; transposed: the same for (n, m).
/// Dtypes: f32 f16 bf16.
/// `samples`: the rows of x are those of the batch, and rows without a sample do not count for amax.
HCTR_OP(void fp8_cast(Context&, Tensor x, bool samples, const Fp8Scaling& scaling, std::byte* rows,
                      std::byte* transposed))

/// The epilogue between the gradient of a layer's output and the gradient of x W + bias.
struct Fp8GradientEnd {
  std::optional<Tensor> y{};  ///< the y of y = dropout(max(x W + bias, 0)); none: y is the sum itself
  float factor = 1;           ///< dropout_scale(), or 1
  std::optional<Tensor> d_bias{}, scratch{};
};
/// Scratch memory for it, if there is a bias.
TensorSpec fp8_gradient_scratch(const TensorSpec& d_y);

/// d_z as FP8, as fp8_cast(), for d_z = y > 0 ? factor * d_y : 0, or d_y without a y; and d_bias = the sums of its
/// columns, in f32 and in a fixed order. d_z is rounded once, to FP8. Shapes: d_y, y [m, n], any row strides; d_bias
/// [n], dense. Dtypes: y as d_y; d_bias f32.
HCTR_OP(void fp8_cast_gradient(Context&, Tensor d_y, const Fp8GradientEnd& end, const Fp8Scaling& scaling,
                               std::byte* rows, std::byte* transposed))

/// Output of fp8_cast().
inline Fp8Matrix fp8_rows(const Tensor& x, const Fp8Scaling& scaling, std::byte* codes) {
  return {codes, x.dim(0), x.dim(1), scaling.format, scaling.scale};
}
inline Fp8Matrix fp8_transposed(const Tensor& x, const Fp8Scaling& scaling, std::byte* codes) {
  return {codes, x.dim(1), x.dim(0), scaling.format, scaling.scale};
}

/// Whether fp8_product() can write to c: its columns are a multiple of 16, or with zero_columns.
bool takes_fp8_product(const Tensor& c);

/// c = a b^T + bias, or its positive part with `relu`; sums in f32, c rounded once.
/// Shapes: a [m, k], b [n, k], bias [n], c [m, n] of any row stride, as takes_fp8_product() wants it; with a bias n is
/// a multiple of 16. Not both operands e5m2. Dtypes: c and bias bf16; or c f32, without a bias.
HCTR_OP(void fp8_product(Context&, const Fp8Matrix& a, const Fp8Matrix& b, std::optional<Tensor> bias, bool relu,
                         Tensor c))

}  // namespace hctr::ops
