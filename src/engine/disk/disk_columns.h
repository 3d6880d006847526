// Which columns of a row go to the disk, and where they are there.
#pragma once

#include <cstddef>
#include <optional>

#include "engine/rows/row_column.h"

namespace hctr {

/// Where a DiskRows::Row has the value of a column; none: its record has it.
std::optional<size_t> place_in_entry(const RowColumn&);
/// Whether an evicted row takes the value with it. All other values start anew when it returns.
inline bool goes_to_disk(const RowColumn& column) { return column.saved || place_in_entry(column).has_value(); }
inline bool in_record(const RowColumn& column) { return goes_to_disk(column) && !place_in_entry(column); }

}  // namespace hctr
