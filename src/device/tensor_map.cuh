// Maps of tensors for the tensor memory accelerator of GPUs from compute capability 9.0 on.
#pragma once

#include <cuda.h>

#include "device/tensor.h"

namespace hctr::cuda {

/// Whether a tensor can have a map: a matrix of f16 or bf16, with rows at multiples of 16 bytes.
bool takes_tensor_map(const Tensor&);

/// Describes a matrix for copies of boxes of `box_rows` rows of `box_columns` columns, at most 64, to and from shared
/// memory, swizzled in units of 128 bytes. What lies outside is read as zero and not written.
CUtensorMap tensor_map(const Tensor&, int box_columns, int box_rows);

}  // namespace hctr::cuda
