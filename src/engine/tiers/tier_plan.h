// Where the rows of a table may be: decided once, when the table is made, since free memory changes.
#pragma once

#include <cstdint>

#include "core/device/row_budget.h"
#include "engine/spec/table_spec.h"

namespace hctr {

/// Whether rows of the table may be on a disk. Replicated tables stay in memory, and so do tables with direct keys
/// whose rows all fit: they need no index then.
bool may_be_on_disk(Runtime&, const TableSpec&);
/// Whether rows change places between the device and its host, by how often they are used.
bool rows_may_move(Runtime&, const TableSpec&);
/// The rows that one lookup may need at a time, the shared one included, which never leaves. `batch_keys`: of training.
int64_t rows_at_a_time(const TableSpec&, int64_t batch_keys);

/// The rows that addresses are reserved for: as many as memory can hold, at least `least`, and `most` where the table
/// has a limit. Without an index all rows of direct keys; errors: Error(device) when memory for them is short.
int64_t rows_to_reserve(Runtime&, const TableSpec&, int64_t least, int64_t most);
int64_t all_direct_rows(Runtime&, const TableSpec&);

}  // namespace hctr
