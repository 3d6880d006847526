// Decides which columns of a row are stored on disk, and where.
#pragma once

#include <cstddef>
#include <optional>

#include "engine/rows/row_column.h"

namespace hctr {

/// The offset of a column's value in DiskRows::Row. nullopt: the value is in the record.
std::optional<size_t> place_in_entry(const RowColumn&);
/// Whether the column is stored with an evicted row. Other columns restart from their initial values when the row is
/// promoted.
inline bool goes_to_disk(const RowColumn& column) { return column.saved || place_in_entry(column).has_value(); }
inline bool in_record(const RowColumn& column) { return goes_to_disk(column) && !place_in_entry(column); }

}  // namespace hctr
