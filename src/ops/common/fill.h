// Sets every element of a tensor.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// y = value. Any row stride. Dtypes: f32 f16 bf16.
HCTR_OP(void fill(Context&, float value, Tensor y))

}  // namespace hctr::ops
