#include "embedding/disk_rows.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "checkpoint/file_checksum.h"
#include "ops/embedding/hash_index.h"

namespace hctr {
namespace {

constexpr int kDiskThreads = 16;              // requests that a disk has at a time
constexpr size_t kFirstEntries = 1024;        // a power of two
constexpr size_t kMostRunBytes = 256 * 1024;  // in one request

std::vector<uint32_t> by_place(std::span<const DiskRows::Row> rows) {
  std::vector<uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return rows[a].place < rows[b].place; });
  return order;
}

class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds), start_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

DiskRows::DiskRows(RowMemory& budget, std::string label, int64_t record_bytes)
    : budget_(budget),
      label_(std::move(label)),
      record_bytes_(record_bytes),
      file_(budget.limits().disk_folder),
      threads_(kDiskThreads),
      entries_(kFirstEntries, Row{.place = kNoPlace}) {
  budget_.take_host(map_bytes());
}

DiskRows::~DiskRows() {
  budget_.take_disk(-offset(places_));
  budget_.take_host(-map_bytes());
}

int64_t DiskRows::map_growth(int64_t more_rows) const {
  size_t entries = entries_.size();
  while (static_cast<size_t>(rows_ + more_rows) > entries / 4 * 3) entries *= 2;
  return entries == entries_.size() ? 0 : static_cast<int64_t>(entries * sizeof(Row));  // the old one is still there
}

void DiskRows::check_map(int64_t more_rows) const {
  const int64_t bytes = map_growth(more_rows);
  if (bytes <= budget_.host_room() || !budget_.has_host()) return;
  throw Error(Kind::device, cat(label_, ": the map of ", rows_ + more_rows, " rows on the disk needs ", bytes,
                                " bytes more in memory, and ", budget_.host_room(), " of ", budget_.limits().host,
                                " are left; ", budget_.limits().host_setting, " must be at least ",
                                budget_.limits().host - budget_.host_room() + bytes, " bytes for each rank"));
}

size_t DiskRows::home(int64_t key, int32_t slot) const {
  return ops::HashIndex::hash(key, slot) & (entries_.size() - 1);
}

size_t DiskRows::position(int64_t key, int32_t slot) const {
  const size_t mask = entries_.size() - 1;
  size_t at = home(key, slot);
  while (entries_[at].place != kNoPlace && (entries_[at].key != key || entries_[at].slot != slot)) at = (at + 1) & mask;
  return at;
}

const DiskRows::Row* DiskRows::find(int64_t key, int32_t slot) const {
  const Row& row = entries_[position(key, slot)];
  return row.place == kNoPlace ? nullptr : &row;
}

void DiskRows::insert(const Row& row) {
  if (static_cast<size_t>(rows_ + 1) > entries_.size() / 4 * 3) grow();
  Row& entry = entries_[position(row.key, row.slot)];
  HCTR_EXPECT(entry.place == kNoPlace, label_, ": key ", row.key, " is on the disk twice");
  entry = row;
  ++rows_;
}

void DiskRows::grow() {
  std::vector<Row> old(entries_.size() * 2, Row{.place = kNoPlace});
  budget_.take_host(map_bytes());
  old.swap(entries_);
  for (const Row& row : old)
    if (row.place != kNoPlace) entries_[position(row.key, row.slot)] = row;
}

void DiskRows::erase(const Row& row) {
  const size_t mask = entries_.size() - 1;
  size_t hole = position(row.key, row.slot);
  HCTR_EXPECT(entries_[hole].place != kNoPlace, label_, ": key ", row.key, " is not on the disk");
  free_.push_back(entries_[hole].place);
  // What lies behind moves up unless its search begins behind the hole.
  for (size_t at = (hole + 1) & mask; entries_[at].place != kNoPlace; at = (at + 1) & mask) {
    const size_t from_home = (at - home(entries_[at].key, entries_[at].slot)) & mask;
    if (from_home < ((at - hole) & mask)) continue;
    entries_[hole] = entries_[at];
    hole = at;
  }
  entries_[hole] = Row{.place = kNoPlace};
  --rows_;
}

uint32_t DiskRows::checksum(const Row& row, const std::byte* record) const {
  const int64_t identity[2] = {row.key, row.slot};
  return crc32_of({record, static_cast<size_t>(record_bytes_)}, crc32_of(std::as_bytes(std::span(identity))));
}

void DiskRows::for_runs(std::span<const Row> rows, const std::vector<uint32_t>& order,
                        const std::function<void(size_t first, size_t count)>& body) const {
  const size_t most = std::max<size_t>(1, kMostRunBytes / static_cast<size_t>(record_bytes_));
  std::vector<std::pair<size_t, size_t>> runs;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool goes_on =
        !runs.empty() && runs.back().second < most && rows[order[i]].place == rows[order[i - 1]].place + 1;
    if (goes_on)
      ++runs.back().second;
    else
      runs.emplace_back(i, 1);
  }
  threads_.parallel_for(static_cast<int64_t>(runs.size()), 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) body(runs[static_cast<size_t>(r)].first, runs[static_cast<size_t>(r)].second);
  });
}

void DiskRows::add(std::span<Row> rows, const std::byte* records) {
  const Stopwatch stopwatch(traffic_.seconds);
  const size_t reused = std::min(rows.size(), free_.size()), added = rows.size() - reused,
               bytes = static_cast<size_t>(record_bytes_);
  const int64_t more = static_cast<int64_t>(added) * record_bytes_;
  if (more > budget_.disk_room())
    throw Error(
        Kind::io,
        cat(label_, ": ", rows_ + static_cast<int64_t>(rows.size()), " rows need ", more, " bytes more in '",
            file_.folder().string(), "', and ", budget_.disk_room(), " of ", budget_.limits().disk,
            " are left; \"disk_limit\" of \"table_memory\", or what is free there at the start, must be at least ",
            budget_.limits().disk - budget_.disk_room() + more, " bytes for each rank"));
  check_map(static_cast<int64_t>(rows.size()));
  HCTR_EXPECT(added < kNoPlace - places_, label_, ": ", places_, " places");
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i].place = i < reused ? free_[free_.size() - 1 - i] : places_ + static_cast<uint32_t>(i - reused);
  const std::vector<uint32_t> order = by_place(rows);
  in_context([&] { return cat("moving ", rows.size(), " rows of ", label_, " to the disk"); },
             [&] {
               for_runs(rows, order, [&](size_t first, size_t count) {
                 std::vector<std::byte> run(count * bytes);
                 for (size_t i = 0; i < count; ++i) {
                   Row& row = rows[order[first + i]];
                   const std::byte* const record = records + order[first + i] * bytes;
                   row.crc = checksum(row, record);
                   std::memcpy(run.data() + i * bytes, record, bytes);
                 }
                 file_.write(offset(rows[order[first]].place), run);
               });
             });
  free_.resize(free_.size() - reused);
  places_ += static_cast<uint32_t>(added);
  budget_.take_disk(more);
  for (const Row& row : rows) insert(row);
  traffic_.rows_written += static_cast<int64_t>(rows.size());
}

void DiskRows::read(std::span<const Row> rows, std::byte* records) const {
  const Stopwatch stopwatch(traffic_.seconds);
  const std::vector<uint32_t> order = by_place(rows);
  const size_t bytes = static_cast<size_t>(record_bytes_);
  in_context(
      [&] { return cat("reading ", rows.size(), " rows of ", label_, " from the disk"); },
      [&] {
        for_runs(rows, order, [&](size_t first, size_t count) {
          std::vector<std::byte> run(count * bytes);
          file_.read(offset(rows[order[first]].place), run);
          for (size_t i = 0; i < count; ++i) {
            const Row& row = rows[order[first + i]];
            if (checksum(row, run.data() + i * bytes) != row.crc)
              throw Error(
                  Kind::io,
                  cat("the row of key ", row.key, ", at byte ", offset(row.place), " of a file in '",
                      file_.folder().string(), "', is not as it was written: its checksum differs. The disk, or a ",
                      "program that writes to it, has changed it; checkpoints do not depend on this file"));
            std::memcpy(records + order[first + i] * bytes, run.data() + i * bytes, bytes);
          }
        });
      });
  traffic_.rows_read += static_cast<int64_t>(rows.size());
}

void DiskRows::remove(std::span<const Row> rows) {
  for (const Row& row : rows) erase(row);
}

int64_t DiskRows::expire(uint32_t step) {
  std::vector<Row> expired;
  for (const Row& row : entries_)
    if (row.place != kNoPlace && row.last_seen < step) expired.push_back(row);
  remove(expired);
  return static_cast<int64_t>(expired.size());
}

void DiskRows::clear_marks(uint8_t bit) {
  for (Row& row : entries_) row.marks &= static_cast<uint32_t>(~bit);
}

void DiskRows::set_base(std::span<const Row> rows) {
  for (const Row& row : rows) {
    Row& entry = entries_[position(row.key, row.slot)];
    HCTR_EXPECT(entry.place != kNoPlace, label_, ": key ", row.key, " is not on the disk");
    entry.base = row.base;
    entry.marks = row.marks;
  }
}

std::vector<DiskRows::Row> DiskRows::sorted_rows() const {
  std::vector<Row> rows;
  rows.reserve(static_cast<size_t>(rows_));
  for (const Row& row : entries_)
    if (row.place != kNoPlace) rows.push_back(row);
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.place < b.place; });
  return rows;
}

}  // namespace hctr
