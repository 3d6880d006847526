// Moves rows from a device to its host if the device's budget is too small for data that must be there.
#include <algorithm>

#include "engine/table/row_store.h"

namespace hctr {

int64_t RowStore::most_to_host() const { return account_.most_to_host(); }

int64_t RowStore::move_to_host(int64_t wanted) {
  const auto staying = account_.rows_to_stay(wanted);
  if (!staying) return 0;
  const bool starts_to_move = account_.starts_to_move();
  const int64_t uses = account_.bytes_to_start(arrays_.capacity()), before = arrays_.number_bytes_on_device();
  arrays_.move_to_host(*staying);
  if (starts_to_move) start_uses(arrays_.capacity());
  if (uses_) uses_->note_border();
  account_.count();
  return before - arrays_.number_bytes_on_device() - uses;
}

void RowStore::make_device_room(int64_t rows, bool moving) {
  const auto missing = [&] { return account_.missing_on_device(rows, moving); };
  // The missing bytes include the uses of this table, and so do the bytes freed by moving rows.
  const auto counted = [&] { return moving ? account_.bytes_to_start(rows) : 0; };
  const auto most = [&] {
    const int64_t own = most_to_host();
    return (own > 0 ? own + counted() : 0) + budget_.others_most_to_host(this);
  };
  // Nothing moves in vain: if a table lacks room for the full growth, it tries fewer rows.
  const bool enough = missing() <= 0 || missing() <= most();
  if (enough && missing() > 0) move_to_host(missing() - counted());
  if (enough && missing() > 0) move_to_host(missing());  // the uses of more rows may take one more granule
  if (enough && missing() > 0) budget_.others_move_to_host(this, missing());
  if (missing() > 0) account_.throw_missing_on_device(rows, missing(), most());
}

RowStore::HostRows RowStore::host_rows() {
  const int64_t rows = static_cast<int64_t>(index_.state().finished) - shared_rows();
  HostRows on_host;
  for (const Column& column : arrays_.columns()) {
    const auto device = static_cast<int64_t>(column.memory.device_bytes());
    if (static_cast<int64_t>(column.bytes_to(rows)) <= device || column.memory.bytes() == column.memory.device_bytes())
      continue;
    on_host.bytes += static_cast<int64_t>(column.bytes_to(rows)) - device;
    on_host.rows = std::max(on_host.rows, std::min(rows, rows - device / column.bytes_per_row + 1));
  }
  const std::span<const int32_t> left = free_places();
  if (on_host.rows > 0) on_host.rows -= left.end() - std::upper_bound(left.begin(), left.end(), rows - on_host.rows);
  if (uses_) uses_->report(on_host);
  return on_host;
}

}  // namespace hctr
