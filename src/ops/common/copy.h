// Copies tensors, whose rows may be strided, within one device.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// y = x, row by row; converts if the dtypes differ. Shapes: equal numbers of rows and of elements per row; if both are
/// dense, equal numbers of elements suffice. Dtypes: f32 f16 bf16 (CPU: and f64) on either side.
HCTR_OP(void copy(Context&, Tensor x, Tensor y))

}  // namespace hctr::ops
