// Attention masks from sequence lengths.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// mask[b, 0, i, j] = 1 where i < from[b] and j < to[b], else 0.
/// Shapes: from and to [batch, 1], mask [batch, 1, most_from, most_to]. Dtypes: all alike, f32 f16 bf16.
HCTR_OP(void sequence_mask(Context&, Tensor from, Tensor to, Tensor mask))

}  // namespace hctr::ops
