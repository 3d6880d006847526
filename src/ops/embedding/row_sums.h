// Sums the gradients of a batch by row, in the order of the batch's distinct rows, for external optimizers.
#pragma once

#include "core/device/op.h"
#include "ops/embedding/embedding_group.h"
#include "ops/embedding/row_elements.h"

namespace hctr::ops {

/// For each position p of the groups, run_of[p] = the run that contains p, or 0 if the row at p is row 0 (no row). If
/// run_of is passed to sum_row_gradients() as RowGroups::rows, the sum of run r is written to row r. Shapes: run_of
/// [key_capacity].
HCTR_OP(void number_runs(Context&, RowGroups, int64_t key_capacity, int32_t* run_of))

/// *host = the number of runs. `host`: page-locked host memory.
HCTR_OP(void report_runs(Context&, RowGroups, int32_t* host))

/// keys[r] = the key of the row of run r. Shapes: keys [key_capacity], of which the first `runs` are written.
HCTR_OP(void keys_of_runs(Context&, RowGroups, RowIdentity, int64_t key_capacity, int64_t* keys))

}  // namespace hctr::ops
