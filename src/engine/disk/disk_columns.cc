#include "engine/disk/disk_columns.h"

#include "engine/disk/disk_rows.h"

namespace hctr {

std::optional<size_t> place_in_entry(const RowColumn& column) {
  if (column.name == "keys") return offsetof(DiskRows::Row, key);
  if (column.name == "slots") return offsetof(DiskRows::Row, slot);
  if (column.name == "last_seen") return offsetof(DiskRows::Row, last_seen);
  if (column.name == "occurrences") return offsetof(DiskRows::Row, occurrences);
  return std::nullopt;
}

}  // namespace hctr
