#include "store/sorted_rows.h"

#include <algorithm>
#include <cstring>

#include "core/base/prefetch.h"

namespace hctr {
namespace {

constexpr size_t kMostRowsOfRun = size_t{1} << 31, kLeastRowsOfRun = size_t{1} << 16, kSamples = 64;
constexpr int64_t kMostRunsAtOnce = 4, kBytesOfWrite = int64_t{4} << 20;
constexpr size_t kMostBytesOfBuffer = size_t{1} << 20, kLeastBytesOfBuffer = size_t{16} << 10,
                 kBytesOfBuffers = size_t{512} << 20;
constexpr size_t kRowsAhead = 16;  // rows whose memory is loaded into the caches in advance

int64_t whole_pages(int64_t bytes) {
  return (bytes + BlockWriter::kPage - 1) / BlockWriter::kPage * BlockWriter::kPage;
}

}  // namespace

SortedRows::SortedRows(fs::path folder, int64_t dim, int64_t memory_bytes)
    : folder_(std::move(folder)),
      dim_(dim),
      most_rows_(std::clamp(static_cast<size_t>(memory_bytes / (8 + 4 * dim + static_cast<int64_t>(sizeof(Place)))),
                            size_t{1}, kMostRowsOfRun)) {}

SortedRows::~SortedRows() = default;

void SortedRows::add(std::span<const int64_t> keys, const float* rows, ThreadPool& threads) {
  for (size_t i = 0; i < keys.size();) {
    if (keys_.size() == most_rows_) write_runs(threads);
    const size_t count = std::min(keys.size() - i, most_rows_ - keys_.size());
    const float* const from = rows + static_cast<int64_t>(i) * dim_;
    keys_.insert(keys_.end(), keys.begin() + static_cast<ptrdiff_t>(i),
                 keys.begin() + static_cast<ptrdiff_t>(i + count));
    rows_.insert(rows_.end(), from, from + static_cast<int64_t>(count) * dim_);
    i += count;
  }
}

SortedRows::Run SortedRows::sorted(size_t first, size_t last) const {
  Run run;
  run.places.resize(last - first);
  for (size_t i = first; i < last; ++i) run.places[i - first] = {byte_order_of(keys_[i]), static_cast<uint32_t>(i)};
  // equal keys get descending positions; std::unique() keeps the first of them, the row that was added last
  std::sort(run.places.begin(), run.places.end(),
            [](const Place& a, const Place& b) { return a.order != b.order ? a.order < b.order : a.at > b.at; });
  const auto same = [](const Place& a, const Place& b) { return a.order == b.order; };
  run.places.erase(std::unique(run.places.begin(), run.places.end(), same), run.places.end());
  run.records = std::ssize(run.places);
  for (size_t s = 0; s < kSamples; ++s) run.samples.push_back(run.places[s * run.places.size() / kSamples].order);
  return run;
}

std::vector<SortedRows::Run> SortedRows::sorted_runs(ThreadPool& threads) const {
  const auto rows = std::ssize(keys_);
  if (rows == 0) return {};
  const int64_t parts = std::clamp<int64_t>(rows / static_cast<int64_t>(kLeastRowsOfRun), 1,
                                            std::min<int64_t>(threads.threads(), kMostRunsAtOnce));
  std::vector<Run> runs(static_cast<size_t>(parts));
  threads.parallel_for(parts, 1, [&](int64_t p, int64_t) {
    runs[static_cast<size_t>(p)] =
        sorted(static_cast<size_t>(rows * p / parts), static_cast<size_t>(rows * (p + 1) / parts));
  });
  return runs;
}

void SortedRows::write_run(Run& run, int64_t begin) const {
  const auto row_bytes = static_cast<size_t>(record_bytes()) - 8;
  const auto places = std::span(run.places);
  run.begin = begin;
  // Blocks are whole pages, not whole records, so a record may continue in the next block.
  std::vector<std::byte> record(row_bytes + 8);
  std::byte* block = nullptr;
  int64_t used = 0, written = 0;
  const auto flush = [&] {
    if (!block) return;
    writer_->write(begin + written, block, used);
    written += used;
    block = nullptr;
    used = 0;
  };
  for (size_t i = 0; i < places.size(); ++i) {
    if (i + kRowsAhead < places.size())
      prefetch(rows_.data() + static_cast<int64_t>(places[i + kRowsAhead].at) * dim_, row_bytes);
    const int64_t key = keys_[places[i].at];
    std::memcpy(record.data(), &key, 8);
    std::memcpy(record.data() + 8, rows_.data() + static_cast<int64_t>(places[i].at) * dim_, row_bytes);
    for (size_t done = 0; done < record.size();) {
      if (!block) block = writer_->take();
      const size_t some = std::min(record.size() - done, static_cast<size_t>(kBytesOfWrite - used));
      std::memcpy(block + used, record.data() + done, some);
      used += static_cast<int64_t>(some);
      done += some;
      if (used == kBytesOfWrite) flush();
    }
  }
  flush();
  run.places = {};
}

void SortedRows::write_runs(ThreadPool& threads) {
  if (!file_) {
    file_ = std::make_unique<ScratchFile>(folder_);
    writer_ = std::make_unique<BlockWriter>(file_->path(), kBytesOfWrite);
  }
  std::vector<Run> runs = sorted_runs(threads);
  std::vector<int64_t> begins;
  for (const Run& run : runs) {
    begins.push_back(file_bytes_);
    file_bytes_ += whole_pages(run.records * record_bytes());
  }
  threads.parallel_for(std::ssize(runs), 1, [&](int64_t r, int64_t) {
    write_run(runs[static_cast<size_t>(r)], begins[static_cast<size_t>(r)]);
  });
  for (Run& run : runs) runs_.push_back(std::move(run));
  keys_.clear();
  rows_.clear();
}

uint64_t SortedRows::order_at(const Run& run, int64_t record) const {
  if (!run.places.empty()) return run.places[static_cast<size_t>(record)].order;
  int64_t key = 0;
  file_->read(record_begin(run, record), std::as_writable_bytes(std::span(&key, 1)));
  return byte_order_of(key);
}

int64_t SortedRows::records_before(const Run& run, uint64_t order) const {
  int64_t first = 0, last = run.records;
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    if (order_at(run, middle) < order)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

std::vector<SortedRows::Range> SortedRows::finish(int64_t most, ThreadPool& threads) {
  if (file_) {
    write_runs(threads);
    writer_->finish();
    writer_.reset();
    keys_ = {};
    rows_ = {};
  } else {
    runs_ = sorted_runs(threads);
  }
  std::vector<uint64_t> samples;
  int64_t records = 0;
  for (const Run& run : runs_) {
    records += run.records;
    samples.insert(samples.end(), run.samples.begin(), run.samples.end());
  }
  std::sort(samples.begin(), samples.end());
  const auto wanted =
      std::clamp<int64_t>(records / static_cast<int64_t>(kLeastRowsOfRun), 1, std::max<int64_t>(most, 1));
  const size_t buffers = std::max<size_t>(1, runs_.size() * static_cast<size_t>(wanted));
  const size_t buffer_bytes = std::clamp(kBytesOfBuffers / buffers, kLeastBytesOfBuffer, kMostBytesOfBuffer);
  std::vector<int64_t> begins(runs_.size());
  std::vector<Range> ranges;
  for (int64_t n = 0; n < wanted; ++n) {
    Range range(*this, buffer_bytes);
    for (size_t r = 0; r < runs_.size(); ++r) {
      const int64_t end =
          n + 1 == wanted
              ? runs_[r].records
              : records_before(runs_[r],
                               samples[samples.size() * static_cast<size_t>(n + 1) / static_cast<size_t>(wanted)]);
      if (end > begins[r]) range.add(r, begins[r], end);
      begins[r] = std::max(begins[r], end);
    }
    ranges.push_back(std::move(range));
  }
  return ranges;
}

SortedRows::Range::Range(const SortedRows& of, size_t buffer_bytes)
    : of_(&of), buffer_bytes_(buffer_bytes), row_(static_cast<size_t>(of.dim_)) {}

void SortedRows::Range::add(size_t run, int64_t first, int64_t last) {
  cursors_.push_back({.run = run, .at = first, .end = last});
  push(cursors_.size() - 1);
}

void SortedRows::Range::push(size_t number) {
  Cursor& cursor = cursors_[number];
  const Run& run = of_->runs_[cursor.run];
  const auto bytes = static_cast<size_t>(of_->record_bytes());
  Head head{.order = 0, .cursor = number, .row = nullptr};
  if (!run.places.empty()) {
    if (cursor.at == cursor.end) return;
    const Place& place = run.places[static_cast<size_t>(cursor.at++)];
    head.order = place.order;
    head.row = reinterpret_cast<const std::byte*>(of_->rows_.data() + static_cast<int64_t>(place.at) * of_->dim_);
    if (cursor.at + static_cast<int64_t>(kRowsAhead) < cursor.end)
      prefetch(of_->rows_.data() +
                   static_cast<int64_t>(run.places[static_cast<size_t>(cursor.at) + kRowsAhead].at) * of_->dim_,
               bytes - 8);
  } else {
    if (cursor.used == cursor.buffer.size()) {
      const int64_t records =
          std::min(cursor.end - cursor.at, std::max<int64_t>(1, static_cast<int64_t>(buffer_bytes_ / bytes)));
      if (records == 0) return;
      cursor.buffer.resize(static_cast<size_t>(records) * bytes);
      of_->file_->read(of_->record_begin(run, cursor.at), cursor.buffer);
      cursor.at += records;
      cursor.used = 0;
    }
    int64_t key = 0;
    std::memcpy(&key, cursor.buffer.data() + cursor.used, 8);
    head.order = byte_order_of(key);
    head.row = cursor.buffer.data() + cursor.used + 8;
    cursor.used += bytes;
  }
  heads_.push_back(head);
  std::push_heap(heads_.begin(), heads_.end(), later);
}

bool SortedRows::Range::next(int64_t& key, const float*& row) {
  if (heads_.empty()) return false;
  const uint64_t order = heads_.front().order;
  key = static_cast<int64_t>(__builtin_bswap64(order));
  row = row_.data();
  for (bool first = true; !heads_.empty() && heads_.front().order == order; first = false) {
    std::pop_heap(heads_.begin(), heads_.end(), later);
    const Head head = heads_.back();
    heads_.pop_back();
    if (first) std::memcpy(row_.data(), head.row, row_.size() * sizeof(float));
    push(head.cursor);
  }
  return true;
}

}  // namespace hctr
