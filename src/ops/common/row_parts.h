// How the rows of a batch are split for wgrad sums: each part is summed separately; then the partial sums are added in
// order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/device/tensor.h"

namespace hctr::ops {

/// Number of parts for a batch; a function of `rows` only. At most 512 parts, because 512 parts occupy a GPU, and their
/// partial sums stay small compared to a large batch. In a small batch, a part has only about 8 rows, because the rows
/// of a part are summed sequentially.
inline int64_t row_parts(int64_t rows) { return std::clamp<int64_t>(rows / 8, 1, 512); }

/// Scratch of `numbers` f32 elements in one row.
inline TensorSpec flat_scratch(int64_t numbers) { return TensorSpec(DType::f32, {1, numbers}); }

}  // namespace hctr::ops
