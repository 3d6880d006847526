// The number of keys of each bag, as a tensor that layers can read.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// y[b, s] = offsets[bag + 1] - offsets[bag], bag = s * samples + b.
/// Shapes: offsets [slots * samples + 1], y [samples, slots]. Dtypes: offsets i32; y f32 f16 bf16.
HCTR_OP(void bag_lengths(Context&, const int32_t* offsets, Tensor y))

}  // namespace hctr::ops
