// The gradients of a batch summed by row, in the order of the list of its rows, for optimizers of somebody else.
#pragma once

#include "core/device/op.h"
#include "ops/embedding/embedding_group.h"
#include "ops/embedding/row_elements.h"

namespace hctr::ops {

/// run_of[p] = the number of the run that position p of the groups is in; 0 where its row is 0. So groups with these as
/// their rows have sum_row_gradients() write the sum of run r to row r. Shapes: run_of [key_capacity].
HCTR_OP(void number_runs(Context&, RowGroups, int64_t key_capacity, int32_t* run_of))

/// keys[r] = the key of the row of run r. Shapes: keys [runs], room for key_capacity.
HCTR_OP(void keys_of_runs(Context&, RowGroups, RowIdentity, int64_t key_capacity, int64_t* keys))

}  // namespace hctr::ops
