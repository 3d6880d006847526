// How much memory a store takes for its rows, and how much the budgets of the device, its host and the disk let it
// take.
#include <algorithm>
#include <bit>

#include "embedding/row_store.h"

namespace hctr {

int64_t RowStore::entries_for(int64_t keys) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(4, keys + (keys + 2) / 3))));
}

int64_t RowStore::bytes_besides_numbers(int64_t rows) const {
  if (!counts_all_) return 0;
  int64_t bytes = staging_ ? static_cast<int64_t>(staging_->bytes()) : 0;
  for (const Column& column : columns_)
    if (!column.numbers) bytes += static_cast<int64_t>(column.bytes_to(rows));
  if (marks_) bytes += rows + 1;
  if (keys_.empty()) {
    const auto removal =
        static_cast<int64_t>(policy_.removes_rows() || on_disk_ ? ops::removal_bytes(runtime_.device(), rows) : 0);
    bytes += std::max(entries_for(rows + ring_keys()) * static_cast<int64_t>(sizeof(ops::IndexEntry)), removal);
  }
  if (disk_) bytes += 3 * static_cast<int64_t>(disk_block()) * disk_->record_bytes();  // on their way
  return bytes;
}

void RowStore::count_besides_numbers() {
  const int64_t bytes = bytes_besides_numbers(capacity_);
  budget_.take_host(bytes - besides_numbers_);
  besides_numbers_ = bytes;
}

int64_t RowStore::most_map_bytes() const {
  // While it grows, half of it is there twice.
  return DiskRows::bytes_in_memory(std::min(kMostRows, budget_.limits().disk / disk_->record_bytes())) / 2 * 3;
}

int64_t RowStore::kept_for_map() const {
  if (!disk_) return 0;
  return std::max<int64_t>(0, std::min(most_map_bytes(), budget_.limits().host / 4) - disk_->map_bytes());
}

size_t RowStore::device_part(const Column& column, int64_t on_device) {
  const size_t granularity = column.memory.granularity();
  return on_device == 0 ? 0 : (column.bytes_to(on_device) + granularity - 1) / granularity * granularity;
}

int64_t RowStore::rows_on_device(int64_t rows) const {
  int64_t room = budget_.device_room();
  if (!budget_.has_host()) return rows;
  for (const Column& column : columns_)
    if (column.numbers && column.memory.bytes() > column.memory.device_bytes()) return std::min(rows, capacity_);
  // The index that these rows will need comes before them.
  const int64_t index = keys_.empty()
                            ? entries_for(rows + ring_keys()) * static_cast<int64_t>(sizeof(ops::IndexEntry)) -
                                  static_cast<int64_t>(entries_.bytes())
                            : 0;
  if (!budget_.limits().device) room -= std::max<int64_t>(0, index);
  const auto bytes_more = [&](int64_t up_to) {
    int64_t sum = 0;
    for (const Column& column : columns_) {
      if (!column.numbers) continue;
      const size_t granularity = column.memory.granularity(),
                   wanted = (column.bytes_to(up_to) + granularity - 1) / granularity * granularity;
      sum += static_cast<int64_t>(wanted - std::min(wanted, column.memory.device_bytes()));
    }
    return sum;
  };
  int64_t fits = std::min(rows, capacity_), beyond = rows + 1;  // by halves
  while (beyond - fits > 1) {
    const int64_t middle = fits + (beyond - fits) / 2;
    (bytes_more(middle) <= room ? fits : beyond) = middle;
  }
  return fits;
}

void RowStore::check_host_room(int64_t rows, int64_t on_device) const {
  if (on_device >= rows && !counts_all_) return;
  int64_t more = std::max<int64_t>(0, bytes_besides_numbers(rows) - besides_numbers_);
  for (const Column& column : columns_) {
    if (!column.numbers || on_device >= rows) continue;
    const size_t granularity = column.memory.granularity(),
                 border = std::max(column.memory.bytes(), device_part(column, on_device)),
                 wanted = (column.bytes_to(rows) + granularity - 1) / granularity * granularity;
    more += static_cast<int64_t>(wanted - std::min(wanted, border));
  }
  const int64_t kept = kept_for_map();
  if (more + kept <= budget_.host_room()) return;
  int64_t least = budget_.limits().host - budget_.host_room() + more;
  if (disk_) least += std::min(most_map_bytes(), least / 3 + 1);  // a quarter of the sum
  throw Error(Kind::device, cat(label_, ": ", rows, " rows need ", more, " bytes more in host memory, and ",
                                budget_.host_room(), " of ", budget_.limits().host, " are left",
                                kept > 0 ? cat(", ", kept, " of them for the map of rows on the disk") : std::string(),
                                "; ", budget_.limits().host_setting, " must be at least ", least,
                                " bytes for each rank", counts_all_ ? "" : ", or \"gpu\" larger"));
}

}  // namespace hctr
