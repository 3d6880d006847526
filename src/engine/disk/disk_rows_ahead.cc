// Requests records from disk, and reads them into memory, before the step that needs them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/expect.h"
#include "engine/disk/disk_rows.h"

namespace hctr {
namespace {

constexpr int kMostFetchThreads = 8;
constexpr size_t kFoundAtATime = 256;    // the map is locked once for this many keys
constexpr size_t kFetchedAtATime = 512;  // rows read per group; a small group makes the first records usable early
constexpr int64_t kFetchedByAThread = 16;
constexpr int64_t kCopiedAtATime = 32;

}  // namespace

void DiskRows::set_room_ahead(int64_t records) {
  if (records <= fetched_.room()) return;
  const std::lock_guard one(ahead_);
  if (!fetch_) fetch_ = std::make_unique<ThreadPool>(std::clamp(usable_cores() / 2, 1, kMostFetchThreads));
  const std::lock_guard lock(changes_);
  fetched_.grow(records);
}

void DiskRows::read_ahead(std::span<const ops::RowOwner> rows) const {
  const std::lock_guard one(ahead_);
  std::vector<Row> found;
  for (size_t first = 0; first < rows.size(); first += kFoundAtATime) {
    const std::lock_guard lock(changes_);
    if (map_.rows() == 0) return;
    const auto some = rows.subspan(first, std::min(kFoundAtATime, rows.size() - first));
    for (size_t i = 0; i < some.size(); ++i) {
      if (i + kAhead < some.size()) prefetch(some[i + kAhead].key, some[i + kAhead].slot);
      if (const Row* row = find(some[i].key, some[i].slot)) found.push_back(*row);
    }
  }
  const auto by_place = [](const Row& a, const Row& b) { return a.place < b.place; };
  std::sort(found.begin(), found.end(), by_place);
  found.erase(std::unique(found.begin(), found.end(), [](const Row& a, const Row& b) { return a.place == b.place; }),
              found.end());
  rows_ahead_ += static_cast<int64_t>(found.size());
  std::vector<uint32_t> places;
  for (const Row& row : found) places.push_back(row.place);
  size_t noted = 0;
  for (size_t first = 0, next = 0; first < places.size(); first = next) {
    for (next = first + 1; next < places.size() && places[next] == places[next - 1] + 1;) ++next;
    const int64_t before = ScratchFile::bytes_from_disk();
    file_.read_ahead(offset(places[first]), static_cast<int64_t>(next - first) * record_bytes_);
    fetched_ahead_ += ScratchFile::bytes_from_disk() - before;
    if (next - noted < kFoundAtATime && next < places.size()) continue;
    note_asked(std::span(places).subspan(noted, next - noted));
    noted = next;
  }
  if (fetch_) fetch(found);
}

void DiskRows::fetch(std::span<const Row> rows) const {
  struct Reading {
    Row row;
    uint32_t slot;
    std::byte* memory;
    bool good = false;
  };
  std::vector<Reading> reading;
  bool begins = true;
  for (size_t first = 0; first < rows.size(); first += kFetchedAtATime) {
    reading.clear();
    {
      const std::lock_guard lock(changes_);
      if (std::exchange(begins, false)) fetched_.begin_batch();
      for (const Row& row : rows.subspan(first, std::min(kFetchedAtATime, rows.size() - first))) {
        const Row* const now = find(row.key, row.slot);
        // Skip unwritten records, because read() copies them from their block in memory.
        if (!now || fetched_.has(now->place) || writes_.is_unwritten(now->place)) continue;
        if (const uint32_t slot = fetched_.reserve(now->place); slot != FetchedRecords::kNone)
          reading.push_back({*now, slot, fetched_.memory(slot)});
      }
    }
    fetch_->parallel_for(static_cast<int64_t>(reading.size()), kFetchedByAThread, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        Reading& each = reading[i];
        try {
          file_.read(offset(each.row.place), {each.memory, static_cast<size_t>(record_bytes_)});
          each.good = checksum(each.row, each.memory) == each.row.crc;
        } catch (const Error&) {  // ignore the error, because read() of the row will report it again
        }
      }
    });
    const std::lock_guard lock(changes_);
    for (const Reading& each : reading) fetched_.publish(each.slot, each.good);
  }
}

void DiskRows::read_from_memory(std::span<const Row> rows, std::vector<uint32_t>& order, std::byte* records) const {
  struct Copy {
    uint32_t row;
    const std::byte* record;
  };
  std::vector<Copy> copies;
  std::vector<uint32_t> taken, others;
  if (!behind_.empty() || fetched_.room() > 0) {
    const std::lock_guard lock(changes_);
    for (const uint32_t i : order) {
      const uint32_t slot = fetched_.take(rows[i].place);
      if (slot != FetchedRecords::kNone) taken.push_back(slot);
      const std::byte* const record =
          slot != FetchedRecords::kNone ? fetched_.memory(slot) : writes_.find(rows[i].place);
      if (record)
        copies.push_back({i, record});
      else
        others.push_back(i);
    }
    order.swap(others);
  }
  const auto bytes = static_cast<size_t>(record_bytes_);
  threads_.parallel_for(static_cast<int64_t>(copies.size()), kCopiedAtATime, [&](int64_t begin, int64_t end) {
    for (const Copy& copy : std::span(copies).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)))
      std::memcpy(records + copy.row * bytes, copy.record, bytes);
  });
  const std::lock_guard lock(changes_);
  for (const uint32_t slot : taken) fetched_.release(slot);
  traffic_.rows_read_ahead += static_cast<int64_t>(taken.size());
}

void DiskRows::note_asked(std::span<const uint32_t> places) const {
  const std::lock_guard lock(changes_);
  if (const size_t needed = size_t{places.back()} + 1; asked_.size() < needed) asked_.resize(needed);
  for (const uint32_t place : places) asked_[place] = true;
}

std::vector<bool> DiskRows::take_asked(std::span<const Row> rows) const {
  std::vector<bool> asked(rows.size());
  const std::lock_guard lock(changes_);
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].place < asked_.size()) {
      asked[i] = asked_[rows[i].place];
      asked_[rows[i].place] = false;
    }
  return asked;
}

}  // namespace hctr
