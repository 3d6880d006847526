// The operands of a GEMM of f32 matrices, each split into two TF32 matrices (ops/gemm/tf32_split.h).
#pragma once

#include "core/device/context.h"
#include "core/device/tensor.h"

namespace hctr::ops::cuda {

/// An operand with both parts adjacent along the summed dimension, and its big part alone.
struct SplitOperand {
  Tensor both, big;
};
/// The first operand has [big, small], the second [small, big]: the GEMM of `both` is what the small parts add.
struct SplitOperands {
  SplitOperand first, second;
};

/// Splits a and b of op(a) op(b); `of_a`, `of_b`: whether they are transposed. The parts have the shapes of a and b but
/// for the summed dimension, which is padded with zeros, and lie in memory of the Runtime until the next call.
/// Errors: Error(device) when memory runs out.
SplitOperands split_operands(Context&, const Tensor& a, bool of_a, const Tensor& b, bool of_b);

}  // namespace hctr::ops::cuda
