#include "engine/disk/disk_rows.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "core/base/expect.h"
#include "engine/disk/disk_snapshot.h"
#include "engine/disk/record_checksum.h"
#include "engine/disk/stopwatch.h"
#include "engine/spec/setting_words.h"

namespace hctr {
namespace {

constexpr int kDiskThreads = 16;              // concurrent disk requests
constexpr size_t kMostRunBytes = 256 * 1024;  // maximum bytes of a request
constexpr int64_t kSegmentBytes = 256 * 1024;
constexpr int64_t kFreeShare = 2;  // rows are compacted if more than 1/kFreeShare of the file is free
// if at most 1/kRoomForOthers of the budget is left, the file reuses free places before it grows
constexpr int64_t kRoomForOthers = 4;
constexpr int64_t kChecksumsAtATime = 64;

std::vector<uint32_t> by_place(std::span<const DiskRows::Row> rows) {
  std::vector<uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return rows[a].place < rows[b].place; });
  return order;
}

}  // namespace

DiskRows::DiskRows(RowMemory& budget, std::string label, int64_t record_bytes)
    : budget_(budget),
      label_(std::move(label)),
      record_bytes_(record_bytes),
      shared_file_(std::make_shared<ScratchFile>(budget.limits().disk_folder)),
      file_(*shared_file_),
      threads_(kDiskThreads),
      places_(static_cast<uint32_t>(std::max<int64_t>(1, kSegmentBytes / record_bytes))),
      writes_(file_, record_bytes, kMostRunBytes),
      fetched_(record_bytes) {
  budget_.take_host(map_bytes());
  budget_.join(this);
}

DiskRows::~DiskRows() {
  budget_.leave(this);
  budget_.promise_disk(-promised_disk_);
  budget_.promise_host(-promised_host_);
  budget_.take_disk(-places_.total() * record_bytes_ - map_bytes_on_disk());
  budget_.take_host(-map_bytes() - snapshot_bytes_);
}

DiskRows::MapGrowth DiskRows::map_growth(int64_t more_rows) const {
  const size_t entries = map_.entries_for(more_rows);
  if (entries == map_.entries()) return {};
  const int64_t bytes = DiskMap::bytes_of(entries);
  const bool on_disk = map_.in_file() || (budget_.has_host() && bytes > host_room());
  return {entries, on_disk ? 0 : bytes, on_disk ? bytes : 0};
}

void DiskRows::grow_map(const MapGrowth& growth) {
  if (growth.entries == 0) return;
  const int64_t on_host = map_bytes(), on_disk = map_bytes_on_disk();
  {
    const std::lock_guard lock(changes_);
    map_.resize(growth.entries, growth.on_disk > 0 ? file_.folder() : fs::path());
  }
  budget_.take_host(growth.on_host - on_host);
  budget_.take_disk(growth.on_disk - on_disk);
  count_promises();
}

uint32_t DiskRows::checksum(const Row& row, const std::byte* record) const {
  return record_checksum(row.key, row.slot, {record, static_cast<size_t>(record_bytes_)});
}

std::vector<DiskRows::Run> DiskRows::runs_of(std::span<const Row> rows, const std::vector<uint32_t>& order) const {
  const size_t most = std::max<size_t>(1, kMostRunBytes / static_cast<size_t>(record_bytes_));
  std::vector<Run> runs;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool goes_on =
        !runs.empty() && runs.back().count < most && rows[order[i]].place == rows[order[i - 1]].place + 1;
    if (!goes_on) runs.push_back({.first = i, .count = 0, .in_memory = true});
    Run& run = runs.back();
    run.in_memory = run.in_memory && order[i] == order[run.first] + run.count;
    ++run.count;
  }
  return runs;
}

void DiskRows::write(std::span<const Row> rows, const std::byte* records) {
  const auto bytes = static_cast<size_t>(record_bytes_);
  const std::vector<uint32_t> order = by_place(rows);
  // A single thread writes, because file systems serialize writes to a file.
  for (const Run& run : runs_of(rows, order)) {
    const auto apart = run.in_memory ? nullptr : std::make_unique_for_overwrite<std::byte[]>(run.count * bytes);
    for (size_t i = 0; apart && i < run.count; ++i)
      std::memcpy(apart.get() + i * bytes, records + order[run.first + i] * bytes, bytes);
    file_.write(offset(rows[order[run.first]].place),
                {apart ? apart.get() : records + order[run.first] * bytes, run.count * bytes});
  }
}

std::vector<uint32_t> DiskRows::take_places(int64_t count, bool in_order) {
  const int64_t before = places_.total(), room = disk_room() / record_bytes_;
  HCTR_EXPECT(count < int64_t{DiskMap::kNoPlace} - before, label_, ": ", before, " places");
  std::vector<uint32_t> places = places_.take_in_order(count, in_order ? room : 0);
  const auto missing = [&] { return count - static_cast<int64_t>(places.size()); };
  places_.take_any(std::min(missing(), places_.free()), places);
  const std::vector<uint32_t> behind = places_.take_in_order(missing(), room - (places_.total() - before));
  places.insert(places.end(), behind.begin(), behind.end());
  count_places(before);
  return places;
}

void DiskRows::give_back(std::span<const uint32_t> places) {
  for (const uint32_t place : places) places_.give_back(place);
}

void DiskRows::undo(std::span<const uint32_t> places) {
  give_back(places);
  const int64_t before = places_.total();
  places_.drop_end();
  count_places(before);
}

void DiskRows::prepare_to_add(std::span<Row> rows, const std::byte* records) {
  const auto count = static_cast<int64_t>(rows.size());
  find_room(count);
  const MapGrowth growth = map_growth(count);
  const int64_t more = disk_growth(count) + growth.on_disk;
  if (more > disk_room())
    throw Error(Kind::io, cat(label_, ": ", map_.rows() + count, " rows",
                              growth.on_disk > 0 ? cat(" and the map of these rows, for which ",
                                                       budget_.limits().host_setting, " is too small,")
                                                 : "",
                              " need ", more, " more bytes in '", file_.folder().string(), "', but ",
                              std::max<int64_t>(0, disk_room()), " of ", budget_.limits().disk, " are left; ",
                              setting_words(budget_.limits()).disk_limit,
                              ", or the space that is free there when the run starts, must be at least ",
                              budget_.limits().disk - disk_room() + more, " bytes for each rank, and ", record_bytes_,
                              " more bytes for each further row"));
  in_context([&] { return cat("the map of ", map_.rows() + count, " rows of ", label_, " on the disk"); },
             [&] { grow_map(growth); });
  const auto bytes = static_cast<size_t>(record_bytes_);
  threads_.parallel_for(count, kChecksumsAtATime, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      rows[i].crc = checksum(rows[i], records + i * bytes);
  });
  // Compaction frees nothing while a snapshot holds the places.
  if (!snapshot_ && places_.in_order() < count && places_.free() > places_.total() / kFreeShare) move_together(count);
}

bool DiskRows::adds_in_order() const {
  return places_.free() <= places_.total() / kFreeShare && disk_room() > budget_.limits().disk / kRoomForOthers;
}

void DiskRows::enter(std::span<const Row> rows) {
  const std::lock_guard lock(changes_);
  for_each_row(rows, [this](const Row& row) { map_.insert(row); });
  traffic_.rows_written += static_cast<int64_t>(rows.size());
}

void DiskRows::add(std::span<Row> rows, const std::byte* records) {
  const Stopwatch stopwatch(traffic_.seconds);
  settle_all();  // otherwise a pending write could hit a place that was freed and is reused here
  prepare_to_add(rows, records);
  const auto count = static_cast<int64_t>(rows.size());
  in_context([&] { return cat("moving ", rows.size(), " rows of ", label_, " to the disk"); },
             [&] {
               const auto write_to = [&](const std::vector<uint32_t>& places) {
                 for (size_t i = 0; i < rows.size(); ++i) rows[i].place = places[i];
                 write(rows, records);
               };
               const bool in_order = adds_in_order();
               std::vector<uint32_t> places = take_places(count, in_order);
               try {
                 write_to(places);
               } catch (const Error&) {
                 undo(places);
                 if ((!in_order || places_.free() < count) && !end_snapshot(true)) throw;
                 places = take_places(count, false);  // the disk is full, so reuse free places
                 try {
                   write_to(places);
                 } catch (const Error&) {
                   undo(places);
                   throw;
                 }
               }
             });
  enter(rows);
}

void DiskRows::read(std::span<const Row> rows, std::byte* records) const {
  const Stopwatch stopwatch(traffic_.seconds);
  std::vector<uint32_t> order = by_place(rows);
  const std::vector<bool> asked = take_asked(rows);
  read_from_memory(rows, order, records);
  in_context(
      [&] { return cat("reading ", rows.size(), " rows of ", label_, " from the disk"); },
      [&] {
        const std::vector<Run> runs = runs_of(rows, order);
        threads_.parallel_for(static_cast<int64_t>(runs.size()), 4, [&](int64_t begin, int64_t end) {
          for (const Run& run : std::span(runs).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)))
            read_run(run, rows, order, asked, records);
        });
      });
  traffic_.rows_read += static_cast<int64_t>(rows.size());
}

void DiskRows::read_run(const Run& run, std::span<const Row> rows, const std::vector<uint32_t>& order,
                        const std::vector<bool>& asked, std::byte* records) const {
  const auto bytes = static_cast<size_t>(record_bytes_);
  const auto apart = run.in_memory ? nullptr : std::make_unique_for_overwrite<std::byte[]>(run.count * bytes);
  std::byte* const together = run.in_memory ? records + order[run.first] * bytes : apart.get();
  bool all_asked = true;
  for (size_t i = 0; i < run.count; ++i) all_asked = all_asked && asked[order[run.first + i]];
  const int64_t before = all_asked ? ScratchFile::bytes_from_disk() : 0;
  file_.read(offset(rows[order[run.first]].place), {together, run.count * bytes});
  if (all_asked) fetched_again_ += ScratchFile::bytes_from_disk() - before;
  for (size_t i = 0; i < run.count; ++i) {
    const Row& row = rows[order[run.first + i]];
    expect_record(row, {together + i * bytes, bytes}, offset(row.place), file_);
    if (!run.in_memory) std::memcpy(records + order[run.first + i] * bytes, together + i * bytes, bytes);
  }
}

void DiskRows::remove(std::span<const Row> rows) {
  const std::lock_guard lock(changes_);
  for_each_row(rows, [this](const Row& row) {
    const uint32_t place = map_.erase(row.key, row.slot);
    places_.give_back(place);
    fetched_.drop(place);
  });
}

int64_t DiskRows::expire(uint32_t step) {
  std::vector<Row> expired;
  map_.for_each([&](const Row& row) {
    if (row.last_seen < step) expired.push_back(row);
  });
  remove(expired);
  return static_cast<int64_t>(expired.size());
}

void DiskRows::clear_marks(uint8_t bit) {
  const std::lock_guard lock(changes_);
  map_.for_each([bit](Row& row) { row.marks &= static_cast<uint32_t>(~bit); });
}

void DiskRows::set_base(std::span<const Row> rows) {
  const std::lock_guard lock(changes_);
  for_each_row(rows, [this](const Row& row) {
    Row& entry = map_.at(row.key, row.slot);
    entry.base = row.base;
    entry.marks = row.marks;
  });
}

}  // namespace hctr
