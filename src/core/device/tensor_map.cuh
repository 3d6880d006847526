// Maps of tensors for the tensor memory accelerator of GPUs from compute capability 9.0 on.
#pragma once

#include <cuda.h>

#include "core/device/tensor_map.h"

namespace hctr::cuda {

/// How the rows of a box lie in shared memory: one after the other, or at 128 bytes each with their units of 16 bytes
/// exchanged, so that units of adjacent rows are in different banks.
enum class Swizzle { none, bytes_128 };

/// Describes a matrix for copies of boxes of `box_rows` rows, at most 256, of `box_columns` columns, of at most 128
/// bytes, to and from shared memory. What lies outside is read as zero and not written.
CUtensorMap tensor_map(const Tensor&, int box_columns, int box_rows, Swizzle swizzle = Swizzle::bytes_128);

}  // namespace hctr::cuda
