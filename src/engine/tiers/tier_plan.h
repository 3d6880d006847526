// Decides which tiers the rows of a table may use. The decision is made only once, when the table is created, because
// free memory changes.
#pragma once

#include <cstdint>

#include "core/device/row_budget.h"
#include "engine/spec/table_spec.h"

namespace hctr {

/// Whether rows of the table may be on disk. Replicated tables stay in memory. A table with direct keys also stays in
/// memory if all its rows fit, and needs no index then.
bool may_be_on_disk(Runtime&, const TableSpec&);
/// Whether rows are swapped between device and host by use counts.
bool rows_may_move(Runtime&, const TableSpec&);
/// Maximum rows that one lookup needs at the same time. Includes the shared row, which is never evicted. `batch_keys`:
/// keys of a training batch.
int64_t rows_at_a_time(const TableSpec&, int64_t batch_keys);

/// The number of rows for which addresses are reserved. rows_to_reserve(): the rows that memory can hold, but at least
/// `least` and at most `most`. all_direct_rows(): all rows of direct keys, for a table without an index. Errors of
/// all_direct_rows(): Error(device) if memory does not suffice.
int64_t rows_to_reserve(Runtime&, const TableSpec&, int64_t least, int64_t most);
int64_t all_direct_rows(Runtime&, const TableSpec&);

}  // namespace hctr
