#include "engine/tiers/row_column.h"

#include "engine/tiers/disk_rows.h"

namespace hctr {

std::optional<size_t> RowColumn::place_in_entry() const {
  if (name == "keys") return offsetof(DiskRows::Row, key);
  if (name == "slots") return offsetof(DiskRows::Row, slot);
  if (name == "last_seen") return offsetof(DiskRows::Row, last_seen);
  if (name == "occurrences") return offsetof(DiskRows::Row, occurrences);
  return std::nullopt;
}

}  // namespace hctr
