// How the rows of a batch are split for the sums of weight gradients: each part is summed alone, then the parts in
// order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/device/tensor.h"

namespace hctr::ops {

/// Enough parts to occupy a GPU, few enough that their sums are small compared to a large batch; of a small one few
/// rows each, since a part takes as long as its rows after each other. Depends on `rows` alone.
inline int64_t row_parts(int64_t rows) { return std::clamp<int64_t>(rows / 8, 1, 512); }

/// f32 memory for this many numbers, in one row.
inline TensorSpec flat_scratch(int64_t numbers) { return TensorSpec(DType::f32, {1, numbers}); }

}  // namespace hctr::ops
