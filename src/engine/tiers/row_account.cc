#include "engine/tiers/row_account.h"

#include <algorithm>

#include "core/base/expect.h"
#include "engine/spec/setting_words.h"
#include "engine/tiers/rows_in_use.h"
#include "ops/embedding/row_removal.h"
#include "ops/embedding/row_swap.h"

namespace hctr {
namespace {

/// Returns the largest number in [fits, beyond) for which does_fit() is true. `fits` is assumed to fit.
template <class Fits>
int64_t most_that_fits(int64_t fits, int64_t beyond, const Fits& does_fit) {
  while (beyond - fits > 1) {  // bisection
    const int64_t middle = fits + (beyond - fits) / 2;
    (does_fit(middle) ? fits : beyond) = middle;
  }
  return fits;
}

}  // namespace

RowAccount::RowAccount(RowMemory& budget, const RowArrays& arrays, const RowIndex& index, const Rules& rules)
    : budget_(budget),
      arrays_(arrays),
      index_(index),
      device_(arrays.runtime().device()),
      rules_(rules),
      one_memory_(!device_.is_cuda() && budget.limits().device == 0) {}

RowAccount::~RowAccount() {
  budget_.take_device(-counted_.on_device);
  budget_.take_host(-counted_.on_host);
}

int64_t RowAccount::whole_granules(int64_t bytes) const {
  const auto granularity = static_cast<int64_t>(index_.granularity());
  // On a CPU do not round, because the system allocates only touched pages.
  return one_memory_ ? bytes : (bytes + granularity - 1) / granularity * granularity;
}

int64_t RowAccount::bytes_of_uses(int64_t rows) const {
  const auto words = static_cast<int64_t>(sizeof(int32_t));
  return whole_granules(rows + 1) + (rules_.direct ? whole_granules((rows + 1) * words) + (rows + 1) * words : 0) +
         static_cast<int64_t>(2 * sizeof(uint64_t)) + 2 * most_swaps(arrays_.most_rows()) * words +
         static_cast<int64_t>(ops::swap_scratch_bytes(device_, arrays_.most_rows()));
}

RowAccount::Besides RowAccount::besides_numbers(int64_t rows, bool moving) const {
  if (!rules_.counts) return {};
  int64_t bytes = arrays_.staging_bytes();
  for (const RowColumn& column : arrays_.columns())
    if (!column.numbers) bytes += whole_granules(static_cast<int64_t>(column.bytes_to(rows)));
  if (arrays_.marks()) bytes += whole_granules(rows + 1);
  if (!rules_.direct) {
    const auto removal = static_cast<int64_t>(rules_.removes_rows ? ops::removal_bytes(device_, rows) : 0);
    const int64_t entries = RowIndex::entries_for(rows + rules_.spare_keys);
    bytes += whole_granules(std::max(entries * static_cast<int64_t>(sizeof(ops::IndexEntry)), removal));
  }
  if (uses_)
    bytes += *uses_;
  else if (moving)
    bytes += bytes_of_uses(rows);
  int64_t on_host = rules_.lookup_bytes;
  if (disk_) on_host += records_->bytes(rows) + disk_->bytes_of_room_ahead(records_->most_ahead(rows));
  return one_memory_ ? Besides{0, bytes + on_host} : Besides{bytes, on_host};
}

void RowAccount::count() {
  const Besides now = besides_numbers(arrays_.capacity(), false);
  budget_.take_device(now.on_device - counted_.on_device);
  budget_.take_host(now.on_host - counted_.on_host);
  counted_ = now;
}

int64_t RowAccount::besides_with_memory() const {
  int64_t bytes = static_cast<int64_t>(index_.bytes()) + arrays_.staging_bytes() + arrays_.mark_bytes();
  for (const RowColumn& column : arrays_.columns())
    if (!column.numbers) bytes += static_cast<int64_t>(column.memory.bytes());
  return bytes + uses_.value_or(0);
}

int64_t RowAccount::most_map_bytes() const {
  // While the map grows, the old and the new map exist together. They need 3/2 of the map's maximum size.
  return DiskRows::bytes_in_memory(std::min(kMostRows, budget_.limits().disk / disk_->record_bytes())) / 2 * 3;
}

int64_t RowAccount::kept_for_map() const {
  if (!disk_ || disk_->map_on_disk()) return 0;
  return std::max<int64_t>(
      0, std::min(most_map_bytes(), budget_.limits().host / 4) - disk_->map_bytes() - disk_->snapshot_bytes());
}

int64_t RowAccount::room_for_numbers(const Besides& besides) const {
  // With a device budget, the memory promised to the index counts as used. Without a budget, only allocated memory
  // counts as used.
  const int64_t have = budget_.limits().device ? counted_.on_device : besides_with_memory();
  return budget_.device_room() - std::max<int64_t>(0, besides.on_device - have);
}

int64_t RowAccount::more_numbers(int64_t rows) const {
  int64_t sum = 0;
  for (const RowColumn& column : arrays_.columns())
    if (column.numbers)
      // A column has more memory than this if an earlier call grew it and then failed to allocate a later one.
      sum += std::max<int64_t>(
          0, static_cast<int64_t>(column.granules_to(rows)) - static_cast<int64_t>(column.memory.device_bytes()));
  return sum;
}

int64_t RowAccount::rows_on_device(int64_t rows, bool moving) const {
  if (!budget_.has_host() && !one_memory_) return rows;
  const int64_t have = std::min(rows, arrays_.capacity());
  if (arrays_.has_numbers_on_host()) return have;
  const int64_t room = room_for_numbers(besides_numbers(rows, moving));
  return most_that_fits(have, rows + 1, [&](int64_t up_to) { return more_numbers(up_to) <= room; });
}

int64_t RowAccount::most_on_device_alone(int64_t least, int64_t most) const {
  return most_that_fits(least, most + 1, [&](int64_t rows) { return rows_on_device(rows) == rows; });
}

int64_t RowAccount::missing_on_device(int64_t rows, bool moving) const {
  const bool all_there = !budget_.has_host() && !one_memory_;
  return (all_there ? more_numbers(rows) : 0) - room_for_numbers(besides_numbers(rows, moving));
}

void RowAccount::throw_missing_on_device(int64_t rows, int64_t missing, int64_t movable) const {
  const int64_t room = budget_.device_room();
  std::string text =
      cat(arrays_.label(), ": ", rows, " rows need ", missing + room, " more bytes on ", to_string(device_),
          budget_.has_host() ? " for their keys, index and statistics" : "", ", but ", room);
  if (const auto& limit = budget_.limits().device)
    text += cat(" of ", *limit, " are left",
                movable > 0 ? cat(" (", room + movable, " if rows are evicted to the host)") : "", "; ",
                budget_.limits().device_setting, " must be at least ", *limit + missing - movable, " bytes");
  else
    text += " are free there in addition to a reserve; use more GPUs or fewer rows";
  if (!budget_.has_disk()) text += cat("; or ", setting_words(budget_.limits()).disk, ", to which rows are evicted");
  throw Error(Kind::device, text);
}

int64_t RowAccount::host_bytes_of_row(int64_t rows, bool moving) const {
  // only the map of rows on disk grows, because evictions free memory for new rows
  if (disk_) return DiskRows::bytes_in_memory(1);
  int64_t bytes = 0;
  for (const RowColumn& column : arrays_.columns())
    if (column.numbers) bytes += column.bytes_per_row;
  const int64_t more = std::max<int64_t>(rows, 1);
  return bytes + (besides_numbers(rows + more, moving).on_host - besides_numbers(rows, moving).on_host) / more;
}

void RowAccount::check_host_room(int64_t rows, int64_t on_device, bool moving) const {
  const Besides besides = besides_numbers(rows, moving);
  int64_t more = besides.on_host - counted_.on_host;
  for (const RowColumn& column : arrays_.columns()) {
    if (!column.numbers || on_device >= rows) continue;
    const size_t border = std::max(column.memory.bytes(), column.granules_to(on_device)),
                 wanted = column.granules_to(rows);
    more += static_cast<int64_t>(wanted - std::min(wanted, border));
  }
  // Vectors and states move to the host if keys and index need their device memory, so they also need host memory.
  if (budget_.has_host() && !one_memory_)
    more += std::clamp<int64_t>(-room_for_numbers(besides), 0, arrays_.number_bytes_on_device());
  if (more <= 0) return;
  const int64_t kept = kept_for_map();
  if (more + kept <= budget_.host_room()) return;
  int64_t least = budget_.limits().host - budget_.host_room() + more;
  if (disk_) least += std::min(most_map_bytes(), least / 3 + 1);  // the map gets a quarter of the sum
  throw Error(Kind::device,
              cat(arrays_.label(), ": ", rows, " rows need ", more, " more bytes in host memory, but ",
                  std::max<int64_t>(0, budget_.host_room()), " of ", budget_.limits().host, " are left",
                  kept > 0 ? cat(", ", kept, " of these for the map of rows on disk") : std::string(), "; ",
                  budget_.limits().host_setting, " must be at least ", least, " bytes for each rank, plus about ",
                  host_bytes_of_row(rows, moving), " more bytes for each further row",
                  one_memory_ ? std::string() : cat(", or ", setting_words(budget_.limits()).larger_device)));
}

int64_t RowAccount::rows_in_budget(int64_t most) const {
  const int64_t capacity = arrays_.capacity();
  int64_t bytes = 0, slack = 0;
  for (const RowColumn& column : arrays_.columns()) {
    if (!column.numbers) continue;
    bytes += column.bytes_per_row;
    slack += 2 * static_cast<int64_t>(column.memory.granularity());
  }
  const bool beyond_device = arrays_.has_numbers_on_host();  // whether new vectors and states go to the host
  const int64_t host = budget_.host_room() - slack - kept_for_map(), there = arrays_.number_bytes_on_device();
  return most_that_fits(capacity, std::max(capacity, most) + 1, [&](int64_t rows) {
    const Besides besides = besides_numbers(rows, rules_.rows_move);
    const int64_t device = std::min(room_for_numbers(besides), free_memory(device_)),
                  on_host = (rows - capacity) * bytes + besides.on_host - counted_.on_host;
    // move rows to the host to free memory for keys and index
    if (device < 0) return -device <= there && on_host - device <= host;
    return on_host - (beyond_device ? 0 : device) <= host;
  });
}

int64_t RowAccount::most_to_host() const {
  // With direct keys, no row can move to the host now: recorded steps ignore places() until rows are in host memory.
  if (!budget_.has_host() || one_memory_ || (starts_to_move() && rules_.direct)) return 0;
  const int64_t most = std::min(arrays_.number_bytes_on_device(), budget_.host_room() - kept_for_map());
  return std::max<int64_t>(0, most - bytes_to_start(arrays_.capacity()));
}

std::optional<int64_t> RowAccount::rows_to_stay(int64_t wanted) const {
  if (most_to_host() == 0) return std::nullopt;
  const int64_t uses = bytes_to_start(arrays_.capacity()), room = budget_.host_room() - kept_for_map();
  const auto moved = [&](int64_t staying) {
    int64_t bytes = 0;
    for (const RowColumn& column : arrays_.columns())
      if (column.numbers) bytes += static_cast<int64_t>(column.memory.bytes_to_host(column.granules_to(staying)));
    return bytes;
  };
  int64_t staying = 0;
  if (moved(0) > wanted + uses)
    staying = most_that_fits(0, arrays_.capacity() + 1, [&](int64_t rows) { return moved(rows) >= wanted + uses; });
  // A negative `wanted` means that many bytes are free for the use counts, so fewer rows must move.
  if (moved(staying) > room || (wanted > 0 && moved(staying) <= uses)) return std::nullopt;
  return staying;
}

}  // namespace hctr
