#include "store/row_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/expect.h"
#include "core/base/file_checksum.h"
#include "engine/disk/record_checksum.h"
#include "store/row_file_load.h"

namespace hctr {
namespace {

constexpr uint64_t kRemoval = uint64_t{1} << 63;  // set in the commit number of a record that removes its key
constexpr char kMagic[8] = {'h', 'c', 't', 'r', 'r', 'o', 'w', '1'};

struct RowFileHead {
  char magic[8];
  int64_t dim;
  uint32_t crc;
};

[[noreturn]] void fail_on_file(const char* what, const fs::path& path) {
  throw Error(Kind::io, cat("cannot ", what, " '", path.string(), "': ", std::strerror(errno)));
}

}  // namespace

struct RowFile::Record {
  int64_t key = 0;
  uint64_t commit = 0;
  const std::byte* row = nullptr;
  bool gone() const { return (commit & kRemoval) != 0; }
  uint64_t number() const { return commit & ~kRemoval; }
};

RowFile::RowFile(fs::path path, int64_t dim, int64_t expected, uint64_t committed, std::optional<int64_t> rows)
    : path_(std::move(path)),
      dim_(dim),
      bytes_(record_bytes(dim)),
      index_(2, rows.value_or(expected)),
      committed_(committed),
      fresh_(!rows),
      expected_(expected) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | (rows ? 0 : O_CREAT | O_TRUNC), 0644);
  if (descriptor_ < 0) fail_on_file("open", path_);
  try {
    if (fresh_) {
      write_head();
    } else {
      read_head();
      scan();
    }
    if (rows && size() != *rows)
      throw Error(Kind::data, cat("'", path_.string(), "' has ", size(), " complete rows, expected ", *rows,
                                  ": the file is damaged; load its table again"));
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

RowFile::~RowFile() { ::close(descriptor_); }

void RowFile::write_head() {
  std::vector<std::byte> head(kHead);
  RowFileHead fields{{}, dim_, 0};
  std::memcpy(fields.magic, kMagic, sizeof kMagic);
  fields.crc = record_checksum(dim_, 0, std::as_bytes(std::span(kMagic)));
  std::memcpy(head.data(), &fields, sizeof fields);
  if (::pwrite(descriptor_, head.data(), head.size(), 0) != static_cast<ssize_t>(head.size()))
    fail_on_file("write", path_);
}

void RowFile::read_head() {
  RowFileHead fields{};
  if (::pread(descriptor_, &fields, sizeof fields, 0) != static_cast<ssize_t>(sizeof fields) ||
      std::memcmp(fields.magic, kMagic, sizeof kMagic) != 0 || fields.dim != dim_ ||
      fields.crc != record_checksum(fields.dim, 0, std::as_bytes(std::span(kMagic))))
    throw Error(Kind::data, cat("'", path_.string(), "' is not a file of rows of ", dim_, " elements"));
  const off_t end = ::lseek(descriptor_, 0, SEEK_END);
  records_ = (static_cast<int64_t>(end) - kHead + bytes_ - 1) / bytes_;  // the last record may be truncated
}

void RowFile::encode(int64_t key, uint64_t commit, const float* row, std::byte* to) const {
  const int64_t end = 16 + 4 * dim_;
  std::memset(to + end, 0, static_cast<size_t>(bytes_ - end));
  std::memcpy(to, &key, 8);
  std::memcpy(to + 8, &commit, 8);
  if (row)
    std::memcpy(to + 16, row, static_cast<size_t>(4 * dim_));
  else
    std::memset(to + 16, 0, static_cast<size_t>(4 * dim_));
  const uint32_t crc = record_checksum(key, static_cast<int32_t>(dim_), {to + 8, static_cast<size_t>(8 + 4 * dim_)});
  std::memcpy(to + end, &crc, 4);
}

bool RowFile::decode(std::span<const std::byte> record, Record& to) const {
  std::memcpy(&to.key, record.data(), 8);
  std::memcpy(&to.commit, record.data() + 8, 8);
  to.row = record.data() + 16;
  uint32_t crc = 0;
  std::memcpy(&crc, record.data() + 16 + 4 * dim_, 4);
  return to.commit != 0 && crc == record_checksum(to.key, static_cast<int32_t>(dim_),
                                                  record.subspan(8, static_cast<size_t>(8 + 4 * dim_)));
}

/// Reads a range of records. Bytes past the end of the file are zero.
void RowFile::read(int64_t record, std::span<std::byte> to) const {
  size_t done = 0;
  while (done < to.size()) {
    const ssize_t got =
        ::pread(descriptor_, to.data() + done, to.size() - done, offset(record) + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_on_file("read", path_);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  std::fill(to.begin() + static_cast<ptrdiff_t>(done), to.end(), std::byte{0});
}

void RowFile::write(int64_t first, std::span<const std::byte> records) {
  for (size_t done = 0; done < records.size();) {
    const ssize_t put =
        ::pwrite(descriptor_, records.data() + done, records.size() - done, offset(first) + static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail_on_file("write", path_);
    done += static_cast<size_t>(put);
  }
}

void RowFile::put_index(int64_t key, int64_t record) {
  uint32_t words[2];
  std::memcpy(words, &record, sizeof words);
  index_.put(key, words);
}

std::optional<int64_t> RowFile::record_of(int64_t key) const {
  uint32_t words[2];
  uint8_t found = 0;
  if (index_.find({{&key, 1}}, words, 2, &found) == 0) return std::nullopt;
  int64_t record = 0;
  std::memcpy(&record, words, sizeof words);
  return record;
}

/// Builds the index. If several records have the same key, the record of the latest commit is used. All other records
/// and uncommitted records are cleared.
void RowFile::scan() {
  const uint64_t committed = committed_.load();
  struct Newest {
    uint64_t commit;
    int64_t record;
  };
  std::unordered_map<int64_t, Newest> gone;
  std::vector<int64_t> replaced, removals;
  std::vector<std::byte> block(static_cast<size_t>(kRecordsAtOnce * bytes_)), other(static_cast<size_t>(bytes_));
  for (int64_t first = 0; first < records_; first += kRecordsAtOnce) {
    const int64_t count = std::min(kRecordsAtOnce, records_ - first);
    read(first, {block.data(), static_cast<size_t>(count * bytes_)});
    for (int64_t r = 0; r < count; ++r) {
      Record record;
      if (!decode({block.data() + r * bytes_, static_cast<size_t>(bytes_)}, record)) {
        free_.push_back(first + r);
        continue;
      }
      if (record.number() > committed) {
        replaced.push_back(first + r);
        continue;
      }
      if (record.gone()) {
        removals.push_back(first + r);
        Newest& newest = gone[record.key];
        newest = std::max(newest, {record.number(), 0}, [](auto& a, auto& b) { return a.commit < b.commit; });
        continue;
      }
      const std::optional<int64_t> before = record_of(record.key);
      if (!before) {
        put_index(record.key, first + r);
        continue;
      }
      Record older;
      read(*before, other);
      if (decode(other, older) && older.number() > record.number()) {
        replaced.push_back(first + r);
      } else {
        replaced.push_back(*before);
        put_index(record.key, first + r);
      }
    }
  }
  for (const auto& [key, removal] : gone)
    if (const std::optional<int64_t> record = record_of(key)) {
      Record row;
      read(*record, other);
      if (!decode(other, row) || row.number() > removal.commit) continue;
      index_.remove(key);
      replaced.push_back(*record);
    }
  clear(replaced);
  clear(removals);
}

/// Call first for the records of removed keys, then for the removal records, so that the clears reach the disk in this
/// order.
void RowFile::clear(const std::vector<int64_t>& records) {
  if (records.empty()) return;
  const std::vector<std::byte> zeros(static_cast<size_t>(bytes_));
  for (const int64_t record : records) write(record, zeros);
  if (::fdatasync(descriptor_) != 0) fail_on_file("write", path_);
  free_.insert(free_.end(), records.begin(), records.end());
}

/// Retries if the record changes: between reading the index and reading the file, the record may be cleared and reused.
bool RowFile::read_row(int64_t key, std::span<std::byte> buffer, float* to) const {
  std::optional<int64_t> before;
  for (int same = 0;;) {
    const std::optional<int64_t> record = record_of(key);
    if (!record) return false;
    same = record == before ? same + 1 : 0;
    if (same > 2)
      throw Error(Kind::data, cat("'", path_.string(), "': the row of key ", key, ", record ", *record,
                                  ", is damaged; load its table again"));
    before = record;
    read(*record, buffer);
    Record row;
    if (!decode(buffer, row) || row.key != key || row.gone() || (!fresh_ && row.number() > committed_.load())) continue;
    std::memcpy(to, row.row, static_cast<size_t>(4 * dim_));
    return true;
  }
}

int64_t RowFile::get(KeysToFind wanted, float* rows, int64_t stride, uint8_t* found) {
  if (fresh_) finish_load();
  std::vector<std::byte> buffer(static_cast<size_t>(bytes_));
  int64_t hits = 0, asked = 0;
  for (size_t i = 0; i < wanted.keys.size(); ++i) {
    if (found[i]) continue;
    ++asked;
    const int64_t place = wanted.places ? wanted.places[i] : static_cast<int64_t>(i);
    found[i] = read_row(wanted.keys[i], buffer, rows + place * stride);
    hits += found[i];
  }
  asked_.fetch_add(asked, std::memory_order_relaxed);
  found_.fetch_add(hits, std::memory_order_relaxed);
  return hits;
}

std::vector<int64_t> RowFile::take_records(size_t count) {
  std::vector<int64_t> records;
  while (records.size() < count && !free_.empty()) {
    records.push_back(free_.back());
    free_.pop_back();
  }
  while (records.size() < count) records.push_back(records_++);
  return records;
}

void RowFile::remove(std::span<const int64_t> keys) {
  std::vector<std::byte> record(static_cast<size_t>(bytes_));
  for (const int64_t key : keys) {
    if (fresh_) {
      if (const std::optional<int64_t> own = record_of(key)) {
        index_.remove(key);
        replaced_.push_back(*own);
      }
      continue;
    }
    const auto found = pending_.find(key);
    if (found != pending_.end() && found->second != kGone) {
      replaced_.push_back(found->second);  // this record is not committed
      pending_.erase(found);
    }
    if (!index_.contains(key) || pending_.contains(key)) continue;
    pending_[key] = kGone;
    removals_.push_back(take_records(1)[0]);
    encode(key, (committed_.load() + 1) | kRemoval, nullptr, record.data());
    write(removals_.back(), record);
  }
}

int64_t RowFile::size_of_next() const {
  int64_t rows = index_.size();
  for (const auto& [key, record] : pending_) rows += record == kGone ? -1 : index_.contains(key) ? 0 : 1;
  return rows;
}

void RowFile::sync() {
  finish_load();
  if (load_ && load_->reserved && ::ftruncate(descriptor_, offset(records_)) != 0) fail_on_file("write", path_);
  // Clears this commit's unused records before the commit, so that a later scan does not find them.
  const std::vector<int64_t> unused = std::exchange(replaced_, {});
  clear(unused);
  if (::fsync(descriptor_) != 0) fail_on_file("write", path_);
}

void RowFile::publish() {
  committed_.fetch_add(1);
  for (const auto& [key, record] : pending_) {
    if (const std::optional<int64_t> before = record_of(key)) replaced_.push_back(*before);
    if (record == kGone)
      index_.remove(key);
    else
      put_index(key, record);
  }
  pending_.clear();
  fresh_ = false;
  const std::lock_guard lock(loading_);
  load_.reset();
}

void RowFile::clear_replaced() {
  clear(std::exchange(replaced_, {}));
  clear(std::exchange(removals_, {}));
}

void RowFile::roll_back() {
  std::vector<int64_t> records = std::exchange(replaced_, {});
  if (fresh_) {
    {
      const std::lock_guard lock(loading_);
      load_.reset();  // discards rows that are not in the file yet
    }
    std::vector<int64_t> all;
    index_.each([&](std::span<const int64_t> keys, std::span<const uint32_t>) {
      all.insert(all.end(), keys.begin(), keys.end());
    });
    for (const int64_t key : all) {
      records.push_back(*record_of(key));
      index_.remove(key);
    }
  }
  for (const auto& [key, record] : pending_)
    if (record != kGone) records.push_back(record);
  pending_.clear();
  clear(records);
  clear(std::exchange(removals_, {}));
}

void RowFile::each(const RowSink& sink) {
  if (fresh_) finish_load();
  std::vector<float> rows;
  std::vector<std::byte> buffer(static_cast<size_t>(bytes_));
  index_.each([&](std::span<const int64_t> keys, std::span<const uint32_t>) {
    rows.resize(keys.size() * static_cast<size_t>(dim_));
    std::vector<int64_t> there;
    for (const int64_t key : keys)
      if (read_row(key, buffer, rows.data() + static_cast<int64_t>(there.size()) * dim_)) there.push_back(key);
    if (!there.empty()) sink(there, {rows.data(), there.size() * static_cast<size_t>(dim_)});
  });
}

void RowFile::verify() {
  int64_t rows = 0;
  each([&](std::span<const int64_t> keys, std::span<const float>) { rows += static_cast<int64_t>(keys.size()); });
  if (rows != size())
    throw Error(Kind::data, cat("'", path_.string(), "' has ", rows, " rows, but its index has ", size()));
}

LevelStatistics RowFile::statistics() const {
  return {.rows = size(), .bytes = expected_bytes(dim_, records_), .asked = asked_.load(), .found = found_.load()};
}

}  // namespace hctr
