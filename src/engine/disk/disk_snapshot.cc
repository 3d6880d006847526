#include "engine/disk/disk_snapshot.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/base/expect.h"
#include "engine/disk/record_checksum.h"
#include "engine/spec/setting_words.h"

namespace hctr {
namespace {

constexpr int64_t kMostRequestBytes = 256 * 1024;
constexpr uint32_t kMostGap = 3;            // maximum unneeded records to read in order to join two requests
constexpr uint32_t kSortedTogether = 4096;  // places per sorting bucket

}  // namespace

void SnapshotUse::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool SnapshotUse::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void SnapshotUse::wait() {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_; });
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double SnapshotUse::waited() const {
  const std::lock_guard lock(mutex_);
  return waited_;
}

DiskSnapshot::DiskSnapshot(std::vector<DiskRows::Row> rows, std::shared_ptr<const ScratchFile> file, std::string label,
                           int64_t record_bytes, std::shared_ptr<SnapshotUse> use)
    : rows_(std::move(rows)),
      file_(std::move(file)),
      label_(std::move(label)),
      record_bytes_(record_bytes),
      use_(std::move(use)) {}

DiskSnapshot::~DiskSnapshot() { use_->end(); }

void DiskSnapshot::read(std::span<const DiskRows::Row> rows, std::byte* records) const {
  const auto bytes = static_cast<size_t>(record_bytes_);
  std::vector<uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return rows[a].place < rows[b].place; });
  const auto place = [&](size_t i) { return int64_t{rows[order[i]].place}; };
  std::vector<size_t> begins;  // index in `order` of each request's first row
  for (size_t i = 0; i < order.size(); ++i)
    if (begins.empty() || place(i) - place(i - 1) > 1 + int64_t{kMostGap} ||
        (place(i) + 1 - place(begins.back())) * record_bytes_ > kMostRequestBytes)
      begins.push_back(i);
  begins.push_back(order.size());
  const auto length = [&](size_t request) {
    return (place(begins[request + 1] - 1) + 1 - place(begins[request])) * record_bytes_;
  };
  in_context([&] { return cat("reading ", rows.size(), " rows of ", label_, " from the disk"); },
             [&] {
               // Submit all requests before this thread waits for the first of them.
               for (size_t request = 0; request + 1 < begins.size(); ++request)
                 file_->read_ahead(place(begins[request]) * record_bytes_, length(request));
               std::vector<std::byte> together;
               for (size_t request = 0; request + 1 < begins.size(); ++request) {
                 const int64_t first = place(begins[request]);
                 together.resize(static_cast<size_t>(length(request)));
                 file_->read(first * record_bytes_, together);
                 for (size_t i = begins[request]; i < begins[request + 1]; ++i) {
                   const std::span record(together.data() + static_cast<size_t>(place(i) - first) * bytes, bytes);
                   expect_record(rows[order[i]], record, place(i) * record_bytes_, *file_);
                   std::memcpy(records + order[i] * bytes, record.data(), bytes);
                 }
               }
             });
}

void expect_record(const DiskRows::Row& row, std::span<const std::byte> record, int64_t byte, const ScratchFile& file) {
  if (record_checksum(row.key, row.slot, record) == row.crc) return;
  throw Error(Kind::io, cat("the row of key ", row.key, ", at byte ", byte, " of a file in '", file.folder().string(),
                            "', is damaged: its checksum does not match. The disk, or a program ",
                            "that writes to the disk, has changed the file; checkpoints do not depend on this file"));
}

std::vector<DiskRows::Row> DiskRows::sorted_rows() const {
  // Bucket by segment first, then sort each bucket, which fits in a CPU cache.
  std::vector<size_t> begins(static_cast<size_t>(places_.total() / kSortedTogether) + 2);
  map_.for_each([&](const Row& row) { ++begins[row.place / kSortedTogether + 1]; });
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<Row> rows(static_cast<size_t>(map_.rows()));
  std::vector<size_t> next(begins.begin(), begins.end() - 1);
  map_.for_each([&](const Row& row) { rows[next[row.place / kSortedTogether]++] = row; });
  threads_.parallel_for(static_cast<int64_t>(next.size()), 1, [&](int64_t s, int64_t) {
    const auto at = [&](int64_t which) {
      return rows.begin() + static_cast<std::ptrdiff_t>(begins[static_cast<size_t>(which)]);
    };
    std::sort(at(s), at(s + 1), [](const Row& a, const Row& b) { return a.place < b.place; });
  });
  return rows;
}

bool DiskRows::has_room(int64_t count) const {
  const MapGrowth growth = map_growth(count);
  return disk_growth(count) + growth.on_disk <= disk_room() && (growth.on_disk == 0 || map_.in_file());
}

void DiskRows::find_room(int64_t count) {
  for (const bool wait : {false, true}) {
    if (wait && has_room(count)) return;
    end_snapshot(wait);
    if (has_room(count)) return;
    if (map_growth(count).on_disk > 0 && !map_.in_file()) budget_.end_snapshots_on_host(this, wait);
    if (has_room(count)) return;
    budget_.end_snapshots_on_disk(this, wait);
    const int64_t missing = disk_growth(count) + map_growth(count).on_disk - disk_room();
    if (missing > 0) budget_.others_give_disk(this, missing);
  }
}

void DiskRows::count_places(int64_t before) {
  budget_.take_disk((places_.total() - before) * record_bytes_);
  count_promises();
}

void DiskRows::count_promises() {
  // While the map grows, the old and the new map both exist, so promise the whole new map, not only the difference.
  const int64_t map = map_.entries() < entries_for_snapshot_ ? DiskMap::bytes_of(entries_for_snapshot_) : 0;
  const int64_t disk = std::max<int64_t>(0, places_for_snapshot_ - places_.total()) * record_bytes_ +
                       (map_.in_file() ? map : 0),
                host = map_.in_file() ? 0 : map;
  budget_.promise_disk(disk - std::exchange(promised_disk_, disk));
  budget_.promise_host(host - std::exchange(promised_host_, host));
}

std::shared_ptr<DiskSnapshot> DiskRows::snapshot(int64_t memory, bool never_waits, std::string& why_not) {
  end_snapshot(false);
  try {
    settle_all();  // write all records first, because the snapshot reads only the file
  } catch (const Error& error) {
    why_not = error.what();
    return nullptr;
  }
  const int64_t bytes =
      map_.rows() * static_cast<int64_t>(sizeof(Row) + sizeof(uint32_t)) + (places_.total() + CHAR_BIT - 1) / CHAR_BIT;
  // This is an upper bound. Every row needs a new place once, because the snapshot holds the old places.
  const int64_t more_on_disk = disk_growth(map_.rows()) + (map_.in_file() ? 2 * map_.bytes() : 0);
  const int64_t map_growth = never_waits && 2 * map_bytes() <= memory ? 2 * map_bytes() : 0;
  if (snapshot_)
    why_not = cat(label_, ": the previous checkpoint is still reading its rows");
  else if (bytes + map_growth > memory)
    why_not = cat(label_, ": a copy of the map of ", map_.rows(), " rows needs ", bytes + map_growth,
                  " bytes, but only ", memory, " are left of ", budget_.limits().host_setting);
  else if (never_waits && more_on_disk > disk_room())
    why_not = cat(label_, ": rows evicted while the checkpoint is written may need ", more_on_disk, " more bytes in '",
                  file_.folder().string(), "', but only ", disk_room(), " of ",
                  setting_words(budget_.limits()).disk_limit, " are left");
  else
    why_not.clear();
  if (!why_not.empty()) return nullptr;
  std::vector<Row> rows = sorted_rows();
  places_.hold();
  snapshot_ = std::make_shared<SnapshotUse>();
  snapshot_bytes_ = bytes;
  budget_.take_host(bytes);
  if (never_waits) {
    places_for_snapshot_ = places_.total() + disk_growth(map_.rows()) / record_bytes_;
    entries_for_snapshot_ = map_growth > 0 || map_.in_file() ? 2 * map_.entries() : 0;
    count_promises();
  }
  return std::make_shared<DiskSnapshot>(std::move(rows), shared_file_, label_, record_bytes_, snapshot_);
}

bool DiskRows::end_snapshot(bool wait) {
  if (!snapshot_) return false;
  if (!snapshot_->ended()) {
    if (!wait) return false;
    snapshot_->wait();
  }
  snapshot_.reset();
  budget_.take_host(-std::exchange(snapshot_bytes_, 0));
  places_for_snapshot_ = 0;
  entries_for_snapshot_ = 0;
  places_.release();
  const int64_t before = places_.total();
  places_.drop_end();  // frees disk space for other tables
  count_places(before);
  return true;
}

}  // namespace hctr
