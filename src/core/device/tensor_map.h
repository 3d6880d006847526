// Checks whether the Tensor Memory Accelerator (TMA) of compute capability 9.0 and newer can copy a tensor.
#pragma once

#include <cstdint>

#include "core/device/tensor.h"

namespace hctr::cuda {

/// Whether tensor_map() supports the tensor. Requires a matrix of f32, f16 or bf16 with rows aligned to 16 bytes.
inline bool takes_tensor_map(const Tensor& t) {
  const auto step = static_cast<uint64_t>(t.row_stride()) * size_of(t.dtype());
  const bool known = t.dtype() == DType::f32 || t.dtype() == DType::f16 || t.dtype() == DType::bf16;
  return known && t.rank() == 2 && t.elements() > 0 && step % 16 == 0 &&
         reinterpret_cast<uintptr_t>(t.bytes()) % 16 == 0;
}

}  // namespace hctr::cuda
