// The operands of a GEMM of f32 matrices, each split into two TF32 matrices (ops/gemm/tf32_split.h).
#pragma once

#include "core/device/context.h"
#include "core/device/tensor.h"

namespace hctr::ops::cuda {

/// A split operand. `both`: the big and the small part, side by side along the summed dimension. `big`: the big part
/// only.
struct SplitOperand {
  Tensor both, big;
};
/// first.both is [big, small], second.both is [small, big]. The GEMM of these two gives big_a small_b + small_a big_b.
struct SplitOperands {
  SplitOperand first, second;
};

/// Splits the operands of op(a) op(b). `of_a`, `of_b`: whether op() transposes. The parts have the shapes of a and b,
/// except that the summed dimension is zero-padded. The parts are in memory of the Runtime and are valid until the next
/// call. Errors: Error(device) if memory runs out.
SplitOperands split_operands(Context&, const Tensor& a, bool of_a, const Tensor& b, bool of_b);

}  // namespace hctr::ops::cuda
