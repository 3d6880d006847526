// Rows leave a store as its policy says.
#pragma once

#include <cstdint>

#include "engine/table/row_store.h"

namespace hctr {

// These wait for queued work, which may be no more than the preparation of `batch`, and return the number of removed
// rows (without candidates that were admitted). The remaining rows in memory are renumbered 1 to n.

/// Evicts the least used rows, down to 15/16 of the limit or to the rows of the batch if these are more.
int64_t evict_rows(RowStore&, const RowsOfBatch& batch);
/// Removes new rows of the batch down to the limit, those with the highest (slot, key) first.
int64_t refuse_newest_rows(RowStore&, const RowsOfBatch& batch);
/// Removes rows last seen before this step.
int64_t expire_rows(RowStore&, int64_t step);
/// Removes these rows of the device's list, row 0 excepted.
int64_t remove_listed_rows(RowStore&, const int32_t* rows, int64_t count);
/// evict_rows() if the store has more rows than the limit. For stores that are only trimmed between batches.
int64_t trim_rows(RowStore&);

}  // namespace hctr
