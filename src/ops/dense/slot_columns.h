// Columns of every slot of a sample, in tensors of their own.
#pragma once

#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

/// Cuts each of the `slots` rows of a sample into adjacent columns: with w_i = n_i / slots and first_i = w_0 + ... +
/// w_{i-1}, y_i[b, s w_i + k] = x[b slots + s, first_i + k].
/// Shapes: x [batch * slots, sum of w_i], y_i [batch, n_i]; any row strides. Dtypes: f32 f16 bf16, alike.
/// Cost: x is read once if it is dense and a few samples fit into shared memory.
HCTR_OP(void split_slots(Context&, Tensor x, int64_t slots, const std::vector<Tensor>& y))
/// The inverse: overwrites x.
HCTR_OP(void join_slots(Context&, const std::vector<Tensor>& y, int64_t slots, Tensor x))

/// The same with a copy for each y, on both devices: for any layout.
void split_slots_by_part(Context&, Tensor x, int64_t slots, const std::vector<Tensor>& y);
void join_slots_by_part(Context&, const std::vector<Tensor>& y, int64_t slots, Tensor x);

}  // namespace hctr::ops
