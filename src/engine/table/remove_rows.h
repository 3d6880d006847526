// Removes rows from a store as its policy decides.
#pragma once

#include <cstdint>

#include "engine/table/row_store.h"

namespace hctr {

// These functions wait for queued work. No work may be queued except the preparation of `batch`. The functions return
// the number of removed rows, not counting admitted candidates. The remaining rows in memory are renumbered 1 to n.

/// Evicts the least used rows. Keeps 15/16 of the limit, or only the rows of the batch if these are more.
int64_t evict_rows(RowStore&, const RowsOfBatch& batch);
/// Removes new rows of the batch, in descending order of (slot, key), until the limit is met.
int64_t refuse_newest_rows(RowStore&, const RowsOfBatch& batch);
/// Removes rows last seen before step `step`.
int64_t expire_rows(RowStore&, int64_t step);
/// Removes the listed rows, except row 0. `rows` is on the device.
int64_t remove_listed_rows(RowStore&, const int32_t* rows, int64_t count);
/// Calls evict_rows() if the store has more rows than the limit. For stores whose rows are evicted only between
/// batches.
int64_t trim_rows(RowStore&);

}  // namespace hctr
