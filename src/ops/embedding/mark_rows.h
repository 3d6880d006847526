// Replicated rows: which of them a step touches on any rank, and which have occurred at all. Marks are i32 [rows + 1],
// 0 or 1, by row; row 0 is not a row.
#pragma once

#include <cstddef>

#include "core/device/op.h"
#include "ops/embedding/embedding_group.h"

namespace hctr::ops {

/// marks[row] = 1 for every row of the batch, 0 for all others. Shapes: marks i32 [rows + 1].
HCTR_OP(void mark_batch(Context&, RowGroups, int64_t key_capacity, Tensor marks))

/// Groups the marked rows with one occurrence each, whose bag is the number of the row. With gradients summed by row
/// this is the input of update_rows, as a batch of one key for each row and of rows + 1 samples. In `groups`, rows,
/// bags and run_begin have capacity for all rows. Scratch is overwritten. Shapes: marks i32 [rows + 1].
HCTR_OP(void group_marked(Context&, Tensor marks, RowGroups groups, std::byte* scratch))
size_t group_marked_scratch_bytes(Device, int64_t rows);
namespace cuda {
size_t group_marked_scratch_bytes(int64_t rows);
}

/// Marks rows 1 to *rows as seen if they are marked. If `touched` is given and the step is not skipped, rows never seen
/// are set to touched, so that a sweep does not change their initial values: a table without these rows would not
/// either. Shapes: marks i32 [rows + 1], seen i32 [more than *rows]; touched likewise, or null. Needs ctx.state().
HCTR_OP(void note_seen(Context&, const uint32_t* rows, Tensor marks, Tensor seen, uint8_t* touched))

/// rows[p] = 0 where the row has not been seen. Shapes: seen i32 [rows + 1], rows [count].
HCTR_OP(void hide_unseen(Context&, Tensor seen, int32_t* rows, int64_t count))

}  // namespace hctr::ops
