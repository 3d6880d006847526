// The element-wise operators of a cross layer in matrix form (DCN v2).
#pragma once

#include "device/op.h"

namespace hctr::ops {

/// y = x * t + skip, element by element: the last step of a layer in matrix form.
HCTR_OP(void cross_gate(Context&, Tensor x, Tensor t, Tensor skip, Tensor y))
/// dt = dy * x; total = dy * t, or total += dy * t when `onto`. `total` is f32.
HCTR_OP(void cross_gate_backward(Context&, Tensor x, Tensor t, Tensor dy, bool onto, Tensor dt, Tensor total))
/// y = a + b. Dtypes: b f32; a and y f32 f16 bf16.
HCTR_OP(void add_f32(Context&, Tensor a, Tensor b, Tensor y))

}  // namespace hctr::ops
