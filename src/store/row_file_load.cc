// Adds rows to a RowFile, and loads new tables.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/base/expect.h"
#include "core/base/thread_pool.h"
#include "store/row_file_load.h"

namespace hctr {
namespace {

constexpr size_t kKeysPrefetched = 256;  // keys whose index entries are loaded into the processor's caches together
constexpr int64_t kLeastRows = 1024;     // for fewer rows, the calling thread works alone
constexpr int64_t kBytesOfTask = int64_t{64} << 10;

}  // namespace

void RowFile::prefetch_index(std::span<const int64_t> keys) const {
  uint32_t words[2 * kKeysPrefetched];
  uint8_t found[kKeysPrefetched] = {};
  index_.find({keys}, words, 2, found);  // one call, so that the memory accesses of all keys overlap
}

void RowFile::put(std::span<const int64_t> keys, const float* rows) {
  if (fresh_) finish_load();
  const uint64_t commit = committed_.load() + 1;
  std::vector<std::byte> buffer;
  int64_t first = 0;
  const auto flush = [&] {
    if (!buffer.empty()) write(first, buffer);
    buffer.clear();
  };
  for (size_t i = 0; i < keys.size(); ++i) {
    if (fresh_ && i % kKeysPrefetched == 0) prefetch_index(keys.subspan(i, std::min(kKeysPrefetched, keys.size() - i)));
    std::optional<int64_t> own;  // the record that this commit has already written for the key; it is overwritten
    if (fresh_)
      own = record_of(keys[i]);
    else if (const auto found = pending_.find(keys[i]); found != pending_.end() && found->second != kGone)
      own = found->second;
    const int64_t record = own ? *own : take_records(1)[0];
    if (!buffer.empty() && (record != first + static_cast<int64_t>(buffer.size()) / bytes_ ||
                            static_cast<int64_t>(buffer.size()) >= kRecordsAtOnce * bytes_))
      flush();
    if (buffer.empty()) first = record;
    buffer.resize(buffer.size() + static_cast<size_t>(bytes_));
    encode(keys[i], commit, rows + static_cast<int64_t>(i) * dim_, buffer.data() + buffer.size() - bytes_);
    if (!fresh_) {
      pending_[keys[i]] = record;
    } else if (!own) {
      put_index(keys[i], record);
    }
  }
  flush();
}

RowFile::Load& RowFile::begin_load() {
  if (load_) return *load_;
  load_ = std::make_unique<Load>(path_, bytes_);
  // Reserved space is contiguous, and several threads can write to it at once. Any failure is harmless: writes report a
  // full disk.
  if (expected_ > 0) load_->reserved = ::fallocate(descriptor_, 0, 0, expected_bytes(dim_, expected_)) == 0;
  return *load_;
}

void RowFile::put_all(std::span<const int64_t> keys, const float* rows, ThreadPool& threads) {
  if (!fresh_ || !free_.empty() || std::ssize(keys) < kLeastRows) return put(keys, rows);
  const int64_t first = records_, count = std::ssize(keys);
  const uint64_t commit = committed_.load() + 1;
  std::vector<uint32_t> index(2 * keys.size());
  const auto record_at = [&](int64_t i) {
    int64_t record = 0;
    std::memcpy(&record, index.data() + 2 * i, sizeof record);
    return record;
  };
  for (int64_t i = 0; i < count; ++i) {
    const int64_t record = first + i;
    std::memcpy(index.data() + 2 * i, &record, sizeof record);
  }
  index_.find_or_put_all(keys, index.data(), threads);
  {
    const std::lock_guard lock(loading_);
    Load& load = begin_load();
    for (int64_t done = 0; done < count;) {
      const std::span<std::byte> to = load.room(first + done, count - done);
      const int64_t some = std::ssize(to) / bytes_;
      threads.parallel_for(some, std::max<int64_t>(1, kBytesOfTask / bytes_), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const int64_t i = done + r;
          std::byte* const record = to.data() + r * bytes_;
          if (record_at(i) == first + i)
            encode(keys[static_cast<size_t>(i)], commit, rows + i * dim_, record);
          else
            std::memset(record, 0, static_cast<size_t>(bytes_));  // the key has a record already: this one stays free
        }
      });
      load.filled(some);
      done += some;
    }
    records_ += count;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (record_at(i) == first + i) continue;
    free_.push_back(first + i);
    put(keys.subspan(static_cast<size_t>(i), 1), rows + i * dim_);
  }
}

void RowFile::finish_load() const {
  const std::lock_guard lock(loading_);
  if (load_) load_->finish();
}

RowFile::Load::Load(const fs::path& path, int64_t record_bytes)
    : bytes(record_bytes), records(records_of_block(record_bytes)), writer(path, records * record_bytes) {}

int64_t RowFile::Load::records_of_block(int64_t bytes) {
  const int64_t whole_pages = BlockWriter::kPage / std::gcd(BlockWriter::kPage, bytes);
  const int64_t unit = whole_pages * bytes <= kMostBytes ? whole_pages : 1;
  return std::max<int64_t>(1, kBytes / (unit * bytes)) * unit;
}

std::span<std::byte> RowFile::Load::room(int64_t record, int64_t most) {
  if (!block) {
    block = writer.take();
    first = record;
    count = 0;
  }
  HCTR_EXPECT(record == first + count, "a load writes records in order");
  const int64_t end = (first / records + 1) * records;
  return {block + count * bytes, static_cast<size_t>(std::min(most, end - record) * bytes)};
}

void RowFile::Load::filled(int64_t some) {
  count += some;
  if ((first + count) % records == 0) write();
}

void RowFile::Load::write() {
  if (!block) return;
  writer.write(kHead + first * bytes, block, count * bytes);
  block = nullptr;
}

void RowFile::Load::finish() {
  write();
  writer.finish();
}

}  // namespace hctr
