// Moves rows within their file, to compact the file or to shorten it for other tables.
#include <algorithm>
#include <cstring>

#include "core/base/expect.h"
#include "engine/disk/disk_rows.h"

namespace hctr {
namespace {

// A compaction scans the whole map. So that the scan pays, a compaction frees at least 1/kShareMovedTogether of the
// file.
constexpr int64_t kShareMovedTogether = 16;
constexpr int64_t kMovedBytes = int64_t{16} << 20;  // bytes per move

size_t moved_at_a_time(int64_t record_bytes) {
  return static_cast<size_t>(std::max<int64_t>(1, kMovedBytes / record_bytes));
}

}  // namespace

void DiskRows::read_segments(std::span<const Row> rows, std::byte* records) const {
  const auto bytes = static_cast<size_t>(record_bytes_);
  std::vector<size_t> begins;  // first row of each segment
  for (size_t i = 0; i < rows.size(); ++i)
    if (i == 0 || rows[i].place / places_.segment() != rows[i - 1].place / places_.segment()) begins.push_back(i);
  begins.push_back(rows.size());
  threads_.parallel_for(static_cast<int64_t>(begins.size()) - 1, 1, [&](int64_t s, int64_t) {
    const size_t begin = begins[static_cast<size_t>(s)], end = begins[static_cast<size_t>(s) + 1];
    const uint32_t first = rows[begin].place;
    std::vector<std::byte> run((rows[end - 1].place - first + 1) * bytes);
    file_.read(offset(first), run);
    for (size_t i = begin; i < end; ++i)
      std::memcpy(records + i * bytes, run.data() + (rows[i].place - first) * bytes, bytes);
  });
}

void DiskRows::move_together(int64_t wanted) {
  settle_all();
  const auto room = [&] { return places_.in_order() + disk_room() / record_bytes_; };
  if (room() < places_.segment()) return;  // no segment can become empty, so skip the scan of the map
  const std::vector<uint32_t> segments = places_.emptiest(std::max(wanted, places_.total() / kShareMovedTogether));
  std::vector<bool> moves(static_cast<size_t>(places_.total() / places_.segment()) + 1);
  for (const uint32_t segment : segments) moves[segment] = true;
  std::vector<Row> rows;
  map_.for_each([&](const Row& row) {
    if (moves[row.place / places_.segment()]) rows.push_back(row);
  });
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.place < b.place; });
  const size_t block = moved_at_a_time(record_bytes_);
  std::vector<std::byte> records;
  for (size_t first = 0, count = 0; first < rows.size(); first += count) {
    count = std::min({block, rows.size() - first, static_cast<size_t>(std::max<int64_t>(0, room()))});
    if (count == 0) return;
    const std::span<Row> some = std::span(rows).subspan(first, count);
    const int64_t before = places_.total();
    const std::vector<uint32_t> to =
        places_.take_in_order(static_cast<int64_t>(some.size()), disk_room() / record_bytes_);
    count_places(before);
    if (to.size() < some.size()) return undo(to);
    if (!move_rows(some, to, records)) return;
    traffic_.rows_moved += static_cast<int64_t>(some.size());
  }
}

bool DiskRows::move_rows(std::span<Row> rows, const std::vector<uint32_t>& to, std::vector<std::byte>& records) {
  records.resize(rows.size() * static_cast<size_t>(record_bytes_));
  std::vector<uint32_t> from;
  try {
    read_segments(rows, records.data());
    for (size_t i = 0; i < rows.size(); ++i) {
      from.push_back(rows[i].place);
      rows[i].place = to[i];
    }
    write(rows, records.data());
  } catch (const Error&) {
    undo(to);
    return false;
  }
  const std::lock_guard lock(changes_);
  for (const Row& row : rows) map_.at(row.key, row.slot).place = row.place;
  for (const uint32_t place : from) fetched_.drop(place);
  give_back(from);
  return true;
}

int64_t DiskRows::give_disk(int64_t bytes) {
  end_snapshot(false);
  if (snapshot_ || places_.free() == 0) return 0;
  try {
    settle_all();
  } catch (const Error&) {  // ignore the error, because the next eviction reports it
    return 0;
  }
  const int64_t before = places_.total(),
                end = before - std::min(places_.free(), (bytes + record_bytes_ - 1) / record_bytes_);
  std::vector<Row> rows;
  map_.for_each([&](const Row& row) {
    if (row.place >= end) rows.push_back(row);
  });
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.place < b.place; });
  std::vector<std::byte> records;
  for (size_t first = 0; first < rows.size(); first += moved_at_a_time(record_bytes_)) {
    const auto some = std::span(rows).subspan(first, std::min(moved_at_a_time(record_bytes_), rows.size() - first));
    if (!move_rows(some, places_.take_before(end, static_cast<int64_t>(some.size())), records)) break;
  }
  places_.drop_end();
  count_places(before);
  file_.cut(offset(static_cast<uint32_t>(places_.total())));
  return (before - places_.total()) * record_bytes_;
}

}  // namespace hctr
