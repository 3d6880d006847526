// Marks of replicated rows: which rows a step touches on any rank, and which rows ever occurred. Marks are i32 [rows +
// 1], 0 or 1, indexed by row; row 0 is not a row.
#pragma once

#include <cstddef>

#include "core/device/op.h"
#include "ops/embedding/embedding_group.h"

namespace hctr::ops {

/// marks[row] = 1 for every row of the batch, else 0. Shapes: marks i32 [rows + 1].
HCTR_OP(void mark_batch(Context&, RowGroups, int64_t key_capacity, Tensor marks))

/// Groups the marked rows as if they were a batch: for each marked row r, bag r contains one key, which has row r.
/// update_rows() can then update these rows from gradients that are summed by row, as in a batch of rows + 1 samples
/// with one key each. The arrays rows, bags and run_begin of `groups` need capacity for all rows. Overwrites `scratch`.
/// Shapes: marks i32 [rows + 1].
HCTR_OP(void group_marked(Context&, Tensor marks, RowGroups groups, std::byte* scratch))
size_t group_marked_scratch_bytes(Device, int64_t rows);
namespace cuda {
size_t group_marked_scratch_bytes(int64_t rows);
}

/// Sets seen[row] for the rows 1 to *rows with marks[row] set. If `touched` is given and the step is not skipped, sets
/// touched[row] for rows that were never seen, so that a sweep does not change their initial values. (A table without
/// replication would not contain these rows.) Shapes: marks i32 [rows + 1], seen i32 [more than *rows]; touched as
/// seen, or null. Needs ctx.state().
HCTR_OP(void note_seen(Context&, const uint32_t* rows, Tensor marks, Tensor seen, uint8_t* touched))

/// Sets rows[p] to 0 if the row has never been seen. Shapes: seen i32 [rows + 1], rows [count].
HCTR_OP(void hide_unseen(Context&, Tensor seen, int32_t* rows, int64_t count))

}  // namespace hctr::ops
