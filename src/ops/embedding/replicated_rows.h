// Rows that every rank has: which of them a step touches on any rank, and which have come at all. Marks are i32 [rows +
// 1], 0 or 1, by row; row 0 is nobody's.
#pragma once

#include <cstddef>

#include "device/op.h"
#include "ops/embedding/embedding_group.h"

namespace hctr::ops {

/// marks[row] = 1 for every row of the batch, 0 for all others. Shapes: marks i32 [rows + 1].
HCTR_OP(void mark_batch(Context&, RowGroups, int64_t key_capacity, Tensor marks))

/// The marked rows as groups with one occurrence each, whose bag is the row's own number: what update_rows takes once
/// the gradients of all occurrences are summed by row, as a batch of one key for each row and of rows + 1 samples. Of
/// `groups` rows, bags and run_begin have room for all rows. Scratch is overwritten. Shapes: marks i32 [rows + 1].
HCTR_OP(void group_marked(Context&, Tensor marks, RowGroups groups, std::byte* scratch))
size_t group_marked_scratch_bytes(Device, int64_t rows);
namespace cuda {
size_t group_marked_scratch_bytes(int64_t rows);
}

/// Of rows 1 to *rows, those that are marked have been seen from now on. Those never seen get their `touched` mark,
/// where these are given and the step is not one to skip: a sweep then leaves them as they started, as a table does
/// that has no row for them yet. Shapes: marks i32 [rows + 1], seen i32 [more than *rows]; touched likewise, or null.
/// Needs ctx.state().
HCTR_OP(void note_seen(Context&, const uint32_t* rows, Tensor marks, Tensor seen, uint8_t* touched))

/// rows[p] = 0 where the row has not been seen. Shapes: seen i32 [rows + 1], rows [count].
HCTR_OP(void hide_unseen(Context&, Tensor seen, int32_t* rows, int64_t count))

}  // namespace hctr::ops
