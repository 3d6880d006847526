// How a batch is cut where every row adds to a weight's gradient: each part is summed by itself, then the parts in
// order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/tensor.h"

namespace hctr::ops {

/// Enough parts to fill a GPU, few enough that their sums are small beside the batch. Depends on the batch alone.
inline int64_t row_parts(int64_t rows) { return std::clamp<int64_t>(rows / 32, 1, 512); }

/// f32 memory for this many numbers, in one row.
inline TensorSpec flat_scratch(int64_t numbers) { return TensorSpec(DType::f32, {1, numbers}); }

}  // namespace hctr::ops
