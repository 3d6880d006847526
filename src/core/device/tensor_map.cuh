// TMA descriptors (tensor maps) of tensors, for compute capability 9.0 and newer.
#pragma once

#include <cuda.h>

#include "core/device/tensor_map.h"

namespace hctr::cuda {

/// Layout of a box's rows in shared memory. none: rows are contiguous. bytes_128: rows have 128 bytes, and their
/// 16-byte units are permuted, so that the units of a column are in different banks in adjacent rows.
enum class Swizzle { none, bytes_128 };

/// Describes a matrix for TMA copies to and from shared memory. A copied box has `box_rows` rows (at most 256) of
/// `box_columns` columns (at most 128 bytes). Elements outside the matrix are read as zero and not written.
CUtensorMap tensor_map(const Tensor&, int box_columns, int box_rows, Swizzle swizzle = Swizzle::bytes_128);

}  // namespace hctr::cuda
