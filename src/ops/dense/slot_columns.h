// Splits the columns of every slot of a sample into separate tensors, and joins them.
#pragma once

#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

/// Splits each of the `slots` rows of a sample into adjacent column ranges. With w_i = n_i / slots and first_i = w_0 +
/// ... + w_{i-1}: y_i[b, s w_i + k] = x[b slots + s, first_i + k]. Shapes: x [batch * slots, sum of w_i], y_i [batch,
/// n_i]; any row strides. Dtypes: f32 f16 bf16, equal. Cost: reads x once if x is dense and a few samples fit in shared
/// memory.
HCTR_OP(void split_slots(Context&, Tensor x, int64_t slots, const std::vector<Tensor>& y))
/// The inverse of split_slots(). Overwrites x.
HCTR_OP(void join_slots(Context&, const std::vector<Tensor>& y, int64_t slots, Tensor x))

/// Like split_slots() and join_slots(), for any layout on both devices, with one copy per y.
void split_slots_by_part(Context&, Tensor x, int64_t slots, const std::vector<Tensor>& y);
void join_slots_by_part(Context&, const std::vector<Tensor>& y, int64_t slots, Tensor x);

}  // namespace hctr::ops
