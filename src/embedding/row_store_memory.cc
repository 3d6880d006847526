// How much memory a store takes for its rows, and how much the budgets of the device, its host and the disk let it
// take.
#include <algorithm>
#include <bit>

#include "embedding/row_store.h"

namespace hctr {

int64_t RowStore::whole_granules(int64_t bytes) const {
  const auto granularity = static_cast<int64_t>(index_.granularity());
  return one_memory_ ? bytes : (bytes + granularity - 1) / granularity * granularity;  // a CPU takes pages in use
}

RowStore::Besides RowStore::besides_numbers(int64_t rows, bool moving) const {
  if (!in_budget_) return {};
  int64_t bytes = arrays_.staging_bytes();
  for (const Column& column : arrays_.columns())
    if (!column.numbers) bytes += whole_granules(static_cast<int64_t>(column.bytes_to(rows)));
  if (arrays_.marks()) bytes += whole_granules(rows + 1);
  if (keys_.empty()) {
    const auto removal =
        static_cast<int64_t>(policy_.removes_rows() || on_disk_ ? ops::removal_bytes(runtime_.device(), rows) : 0);
    bytes += whole_granules(
        std::max(RowIndex::entries_for(rows + ring_keys()) * static_cast<int64_t>(sizeof(ops::IndexEntry)), removal));
  }
  if (uses_)
    bytes += static_cast<int64_t>(uses_->reads.bytes() + uses_->pairs.bytes() + uses_->scratch.bytes() +
                                  uses_->places.bytes());
  else if (moving)
    bytes += bytes_of_uses(rows);
  int64_t on_host = lookup_bytes_;
  if (disk_) on_host += records_->bytes(rows) + disk_->bytes_of_room_ahead(records_->most_ahead(rows));
  return one_memory_ ? Besides{0, bytes + on_host} : Besides{bytes, on_host};
}

void RowStore::count_besides_numbers() {
  const Besides now = besides_numbers(arrays_.capacity(), false);
  budget_.take_device(now.on_device - besides_.on_device);
  budget_.take_host(now.on_host - besides_.on_host);
  besides_ = now;
}

int64_t RowStore::besides_with_memory() const {
  int64_t bytes = static_cast<int64_t>(index_.bytes()) + arrays_.staging_bytes() + arrays_.mark_bytes();
  for (const Column& column : arrays_.columns())
    if (!column.numbers) bytes += static_cast<int64_t>(column.memory.bytes());
  if (uses_)
    bytes += static_cast<int64_t>(uses_->reads.bytes() + uses_->pairs.bytes() + uses_->scratch.bytes() +
                                  uses_->places.bytes());
  return bytes;
}

RowStore::DeviceBytes RowStore::device_bytes() const { return {arrays_.number_bytes_on_device(), besides_.on_device}; }

int64_t RowStore::most_map_bytes() const {
  // While it grows, half of it is there twice.
  return DiskRows::bytes_in_memory(std::min(kMostRows, budget_.limits().disk / disk_->record_bytes())) / 2 * 3;
}

int64_t RowStore::kept_for_map() const {
  if (!disk_) return 0;
  return std::max<int64_t>(
      0, std::min(most_map_bytes(), budget_.limits().host / 4) - disk_->map_bytes() - disk_->snapshot_bytes());
}

int64_t RowStore::room_for_numbers(const Besides& besides) const {
  // What is free tells of memory alone, a stated budget also of what is promised to the index.
  const int64_t have = budget_.limits().device ? besides_.on_device : besides_with_memory();
  return budget_.device_room() - std::max<int64_t>(0, besides.on_device - have);
}

int64_t RowStore::rows_on_device(int64_t rows, bool moving) const {
  if (!budget_.has_host() && !one_memory_) return rows;
  if (arrays_.has_numbers_on_host()) return std::min(rows, arrays_.capacity());
  const int64_t room = room_for_numbers(besides_numbers(rows, moving));
  const auto bytes_more = [&](int64_t up_to) {
    int64_t sum = 0;
    for (const Column& column : arrays_.columns())
      if (column.numbers)
        sum += static_cast<int64_t>(column.granules_to(up_to)) - static_cast<int64_t>(column.memory.device_bytes());
    return sum;
  };
  int64_t fits = std::min(rows, arrays_.capacity()), beyond = rows + 1;  // by halves
  while (beyond - fits > 1) {
    const int64_t middle = fits + (beyond - fits) / 2;
    (bytes_more(middle) <= room ? fits : beyond) = middle;
  }
  return fits;
}

int64_t RowStore::most_to_host() const {
  // Recorded steps find direct keys by arithmetic alone until some of their rows are on the host.
  const bool starts_to_move = rows_move_ && !uses_;
  if (!budget_.has_host() || one_memory_ || (starts_to_move && !keys_.empty())) return 0;
  const int64_t most = std::min(device_bytes().numbers, budget_.host_room() - kept_for_map());
  return std::max<int64_t>(0, most - (starts_to_move ? bytes_of_uses(arrays_.capacity()) : 0));
}

int64_t RowStore::move_to_host(int64_t wanted) {
  if (most_to_host() == 0) return 0;
  const bool starts_to_move = rows_move_ && !uses_;
  const int64_t uses = starts_to_move ? bytes_of_uses(arrays_.capacity()) : 0;
  const auto moved = [&](int64_t staying) {
    int64_t bytes = 0;
    for (const Column& column : arrays_.columns())
      if (column.numbers) bytes += static_cast<int64_t>(column.memory.bytes_to_host(column.granules_to(staying)));
    return bytes;
  };
  const int64_t room = budget_.host_room() - kept_for_map();
  int64_t staying = 0, too_many = arrays_.capacity() + 1;  // by halves
  if (moved(0) > wanted + uses)
    while (too_many - staying > 1) {
      const int64_t middle = staying + (too_many - staying) / 2;
      (moved(middle) >= wanted + uses ? staying : too_many) = middle;
    }
  if (moved(staying) > room || moved(staying) <= uses) return 0;
  const int64_t before = device_bytes().numbers;
  for (Column& column : arrays_.columns())
    if (column.numbers) column.memory.move_to_host(runtime_.compute_stream(), column.granules_to(staying));
  if (starts_to_move) allocate_uses(arrays_.capacity());
  if (uses_) note_border();
  count_besides_numbers();
  return before - device_bytes().numbers - uses;
}

void RowStore::make_device_room(int64_t rows, bool moving) {
  int64_t numbers = 0;  // that have to be on the device
  for (const Column& column : arrays_.columns())
    if (column.numbers && !budget_.has_host() && !one_memory_)
      numbers += static_cast<int64_t>(column.granules_to(rows)) - static_cast<int64_t>(column.memory.device_bytes());
  const auto missing = [&] { return numbers - room_for_numbers(besides_numbers(rows, moving)); };
  // What is missing has the uses of this table already, and so has what moving its rows frees.
  const auto counted = [&] { return moving && !uses_ ? bytes_of_uses(rows) : int64_t{0}; };
  const auto most = [&] {
    const int64_t own = most_to_host();
    return (own > 0 ? own + counted() : 0) + budget_.others_most_to_host(this);
  };
  // Nothing moves in vain: a table that has no room for many more rows at once tries fewer.
  const bool enough = missing() <= 0 || missing() <= most();
  if (enough && missing() > 0) move_to_host(missing() - counted());
  if (enough && missing() > 0) move_to_host(missing());  // the uses of more rows may take a piece more
  if (enough && missing() > 0) budget_.others_move_to_host(this, missing());
  if (missing() <= 0) return;
  const int64_t room = budget_.device_room(), movable = most();
  std::string text =
      cat(arrays_.label(), ": ", rows, " rows need ", missing() + room, " bytes more on ", to_string(runtime_.device()),
          budget_.has_host() ? " for their keys, index and statistics" : "", ", and ", room);
  if (const auto& limit = budget_.limits().device)
    text +=
        cat(" of ", *limit, " are left", movable > 0 ? cat(" (", room + movable, " if rows leave for the host)") : "",
            "; ", budget_.limits().device_setting, " must be at least ", *limit + missing() - movable, " bytes");
  else
    text += " are free there but for a reserve; more GPUs, or fewer rows, need less on each";
  if (!budget_.has_disk()) text += "; or name a \"disk\" in \"table_memory\", and rows leave memory for it";
  throw Error(Kind::device, text);
}

void RowStore::check_host_room(int64_t rows, int64_t on_device, const Besides& besides) const {
  int64_t more = besides.on_host - besides_.on_host;
  for (const Column& column : arrays_.columns()) {
    if (!column.numbers || on_device >= rows) continue;
    const size_t border = std::max(column.memory.bytes(), column.granules_to(on_device)),
                 wanted = column.granules_to(rows);
    more += static_cast<int64_t>(wanted - std::min(wanted, border));
  }
  // What has to leave the device for keys and index goes there too.
  if (budget_.has_host() && !one_memory_)
    more += std::clamp<int64_t>(-room_for_numbers(besides), 0, device_bytes().numbers);
  if (more == 0) return;
  const int64_t kept = kept_for_map();
  if (more + kept <= budget_.host_room()) return;
  int64_t least = budget_.limits().host - budget_.host_room() + more;
  if (disk_) least += std::min(most_map_bytes(), least / 3 + 1);  // a quarter of the sum
  throw Error(Kind::device, cat(arrays_.label(), ": ", rows, " rows need ", more, " bytes more in host memory, and ",
                                budget_.host_room(), " of ", budget_.limits().host, " are left",
                                kept > 0 ? cat(", ", kept, " of them for the map of rows on the disk") : std::string(),
                                "; ", budget_.limits().host_setting, " must be at least ", least,
                                " bytes for each rank", one_memory_ ? "" : ", or \"gpu\" larger"));
}

}  // namespace hctr
