#include "store/sorted_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace hctr {
namespace {

constexpr size_t kBytesOfRunBuffer = size_t{1} << 20, kMostRowsOfRun = size_t{1} << 31;

}  // namespace

SortedRows::SortedRows(fs::path folder, int64_t dim, int64_t memory_bytes)
    : folder_(std::move(folder)),
      dim_(dim),
      most_rows_(std::clamp(static_cast<size_t>(memory_bytes / (8 + 4 * dim)), size_t{1}, kMostRowsOfRun)),
      row_(static_cast<size_t>(dim)) {}

void SortedRows::add(std::span<const int64_t> keys, const float* rows) {
  for (size_t i = 0; i < keys.size();) {
    if (keys_.size() == most_rows_) write_run();
    const size_t count = std::min(keys.size() - i, most_rows_ - keys_.size());
    const float* const from = rows + static_cast<int64_t>(i) * dim_;
    keys_.insert(keys_.end(), keys.begin() + static_cast<ptrdiff_t>(i),
                 keys.begin() + static_cast<ptrdiff_t>(i + count));
    rows_.insert(rows_.end(), from, from + static_cast<int64_t>(count) * dim_);
    i += count;
  }
}

/// The sorted order of the rows in memory. If several rows have the same key, only the last one is kept.
std::vector<uint32_t> SortedRows::sorted() const {
  std::vector<uint32_t> order(keys_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
    const uint64_t left = byte_order_of(keys_[a]), right = byte_order_of(keys_[b]);
    return left != right ? left < right : a > b;
  });
  const auto same = [this](uint32_t a, uint32_t b) { return keys_[a] == keys_[b]; };
  order.erase(std::unique(order.begin(), order.end(), same), order.end());
  return order;
}

void SortedRows::write_run() {
  if (keys_.empty()) return;
  if (!file_) file_ = std::make_unique<ScratchFile>(folder_);
  const auto bytes = static_cast<size_t>(record_bytes());
  std::vector<std::byte> buffer;
  const int64_t first = file_bytes_;
  const auto flush = [&] {
    file_->write(file_bytes_, buffer);
    file_bytes_ += static_cast<int64_t>(buffer.size());
    buffer.clear();
  };
  for (const uint32_t i : sorted()) {
    const size_t at = buffer.size();
    buffer.resize(at + bytes);
    std::memcpy(buffer.data() + at, &keys_[i], 8);
    std::memcpy(buffer.data() + at + 8, rows_.data() + static_cast<int64_t>(i) * dim_, bytes - 8);
    if (buffer.size() >= kBytesOfRunBuffer) flush();
  }
  flush();
  runs_.push_back({.at = first, .end = file_bytes_});
  keys_.clear();
  rows_.clear();
}

void SortedRows::finish() {
  if (runs_.empty()) {
    order_ = sorted();
    return;
  }
  write_run();
  keys_ = {};
  rows_ = {};
  for (size_t r = 0; r < runs_.size(); ++r) push(r);
}

bool SortedRows::fill(Run& run) const {
  const int64_t bytes = record_bytes();
  const int64_t records = std::max<int64_t>(1, static_cast<int64_t>(kBytesOfRunBuffer) / bytes);
  run.buffer.resize(static_cast<size_t>(std::min(run.end - run.at, records * bytes)));
  run.used = 0;
  if (run.buffer.empty()) return false;
  file_->read(run.at, run.buffer);
  run.at += static_cast<int64_t>(run.buffer.size());
  return true;
}

/// The order of the heap, whose top is the smallest key. For equal keys the top is the run that was written last.
bool SortedRows::later(const Head& a, const Head& b) { return a.order != b.order ? a.order > b.order : a.run < b.run; }

void SortedRows::push(size_t number) {
  Run& run = runs_[number];
  if (run.used == run.buffer.size() && !fill(run)) return;
  int64_t key = 0;
  std::memcpy(&key, run.buffer.data() + run.used, 8);
  heads_.push_back({byte_order_of(key), number});
  std::push_heap(heads_.begin(), heads_.end(), later);
}

bool SortedRows::next(int64_t& key, const float*& row) {
  if (runs_.empty()) {
    if (at_ == order_.size()) return false;
    key = keys_[order_[at_]];
    row = rows_.data() + static_cast<int64_t>(order_[at_++]) * dim_;
    return true;
  }
  if (heads_.empty()) return false;
  const uint64_t order = heads_.front().order;
  key = static_cast<int64_t>(__builtin_bswap64(order));
  row = row_.data();
  for (bool first = true; !heads_.empty() && heads_.front().order == order; first = false) {
    std::pop_heap(heads_.begin(), heads_.end(), later);
    const size_t number = heads_.back().run;
    heads_.pop_back();
    Run& run = runs_[number];
    if (first) std::memcpy(row_.data(), run.buffer.data() + run.used + 8, row_.size() * sizeof(float));
    run.used += static_cast<size_t>(record_bytes());
    push(number);
  }
  return true;
}

}  // namespace hctr
