#include "store/rocks_table.h"

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "core/base/expect.h"
#include "store/table_names.h"

namespace hctr {
namespace {

constexpr int64_t kMemoryOfLoad = int64_t{256} << 20;
constexpr int kMostThreadsOfLoad = 8;
constexpr size_t kRowsOfPiece = 1024;

/// A source of loaded rows for the plug-in.
struct LoadedRows {
  SortedRows::Range rows;
  int64_t count = 0, key = 0;
  std::exception_ptr error{};

  static RocksNext next(void* self, const void** key, const void** row) {
    auto& from = *static_cast<LoadedRows*>(self);
    const float* values = nullptr;
    try {
      if (!from.rows.next(from.key, values)) return RocksNext::end;
    } catch (...) {
      from.error = std::current_exception();
      return RocksNext::failed;
    }
    ++from.count;
    *key = &from.key;
    *row = values;
    return RocksNext::row;
  }
};

/// Passes rows to a sink in pieces.
struct PiecesOfColumn {
  const RowSink& sink;
  int64_t dim;
  std::vector<int64_t> keys{};
  std::vector<float> rows{};
  std::string problem{};

  static bool take(void* self, const void* key, int64_t key_bytes, const void* value, int64_t value_bytes) {
    auto& to = *static_cast<PiecesOfColumn*>(self);
    if ((key_bytes != 8 && key_bytes != 4) || value_bytes != to.dim * static_cast<int64_t>(sizeof(float))) {
      to.problem =
          cat("Corruption: a row has ", value_bytes, " bytes, and its key has ", key_bytes,
              " bytes; expected a key of 8 or 4 bytes and a row of ", to.dim * static_cast<int64_t>(sizeof(float)));
      return false;
    }
    int64_t number = 0;
    std::copy_n(static_cast<const std::byte*>(key), key_bytes, reinterpret_cast<std::byte*>(&number));
    to.keys.push_back(number);
    const size_t at = to.rows.size();
    to.rows.resize(at + static_cast<size_t>(to.dim));
    std::copy_n(static_cast<const std::byte*>(value), value_bytes, reinterpret_cast<std::byte*>(to.rows.data() + at));
    if (to.keys.size() == kRowsOfPiece) to.flush();
    return true;
  }
  void flush() {
    if (!keys.empty()) sink(keys, rows);
    keys.clear();
    rows.clear();
  }
};

}  // namespace

void check_rocks(const char* problem, const fs::path& folder) {
  if (!problem) return;
  const bool damaged = std::string_view(problem).starts_with("Corruption");
  throw Error(damaged ? Kind::data : Kind::io, cat("the RocksDB database '", folder.string(), "': ", problem));
}

RocksTable::RocksTable(std::shared_ptr<RocksDatabase> database, std::shared_ptr<RocksColumn> column,
                       const StoreRocksOptions& options, int64_t dim, std::optional<int64_t> rows, bool fresh)
    : database_(std::move(database)),
      column_(std::move(column)),
      folder_(options.folder),
      key_bytes_(options.key_bytes),
      dim_(dim),
      rows_(rows.value_or(-1)),
      fresh_(fresh) {
  if (fresh) loading_ = std::make_unique<SortedRows>(folder_, dim, kMemoryOfLoad);
}

int64_t RocksTable::find(KeysToFind wanted, float* rows, int64_t stride, uint8_t* found) const {
  thread_local std::vector<uint8_t> others;
  int64_t hits = 0;
  RocksRequest request{.keys = wanted.keys.data(),
                       .count = static_cast<int64_t>(wanted.keys.size()),
                       .key_bytes = key_bytes_,
                       .places = wanted.places,
                       .rows = rows,
                       .stride = stride,
                       .row_bytes = dim_ * static_cast<int64_t>(sizeof(float)),
                       .found = found};
  const bool all_fit = std::ranges::all_of(wanted.keys, [this](int64_t key) { return fits_key(key, key_bytes_); });
  if (!all_fit) {  // keys that do not fit have no rows and must not be truncated
    others.assign(found, found + request.count);
    for (size_t i = 0; i < wanted.keys.size(); ++i) others[i] |= !fits_key(wanted.keys[i], key_bytes_);
    request.found = others.data();
  }
  check_rocks(database_->get(column_.get(), request, &hits), folder_);
  if (!all_fit)
    for (size_t i = 0; i < wanted.keys.size(); ++i)
      if (fits_key(wanted.keys[i], key_bytes_)) found[i] = others[i];
  return hits;
}

int64_t RocksTable::get(KeysToFind wanted, float* rows, int64_t stride, uint8_t* found) {
  const auto done = std::count_if(found, found + wanted.keys.size(), [](uint8_t one) { return one != 0; });
  const int64_t hits = find(wanted, rows, stride, found);
  asked_.fetch_add(static_cast<int64_t>(wanted.keys.size()) - done, std::memory_order_relaxed);
  found_.fetch_add(hits, std::memory_order_relaxed);
  return hits;
}

int64_t RocksTable::count(std::span<const int64_t> keys) {
  std::vector<uint8_t> found(keys.size());
  return find({keys}, nullptr, 0, found.data());
}

void RocksTable::check_keys(std::span<const int64_t> keys) const {
  for (const int64_t key : keys)
    if (!fits_key(key, key_bytes_))
      throw Error(Kind::data,
                  cat("key ", key, " does not fit in the keys of ", key_bytes_, " bytes in '", folder_.string(), "'"));
}

void RocksTable::put_all(std::span<const int64_t> keys, const float* rows, ThreadPool& threads) {
  if (!loading_) return put(keys, rows);
  check_keys(keys);
  loading_->add(keys, rows, threads);
}

void RocksTable::put(std::span<const int64_t> keys, const float* rows) {
  if (loading_) {
    ThreadPool alone(1);
    return put_all(keys, rows, alone);
  }
  check_keys(keys);
  for (size_t i = 0; i < keys.size(); ++i) {
    const float* const row = rows + static_cast<int64_t>(i) * dim_;
    auto [at, added] = pending_.try_emplace(keys[i], kGone);
    if (at->second == kGone) {
      at->second = static_cast<int64_t>(rows_put_.size());
      rows_put_.insert(rows_put_.end(), row, row + dim_);
    } else {
      std::copy_n(row, dim_, rows_put_.begin() + static_cast<ptrdiff_t>(at->second));
    }
  }
}

void RocksTable::remove(std::span<const int64_t> keys) {
  finish();
  for (const int64_t key : keys)
    if (fits_key(key, key_bytes_)) pending_[key] = kGone;
}

void RocksTable::finish() const {
  if (!loading_) return;
  const auto loading = std::move(loading_);
  ThreadPool threads(std::min(usable_cores(), kMostThreadsOfLoad));
  std::vector<LoadedRows> loaded;
  for (SortedRows::Range& range : loading->finish(threads.threads(), threads)) loaded.push_back({std::move(range)});
  std::vector<RocksSource> sources;
  for (LoadedRows& one : loaded) sources.push_back({&one, LoadedRows::next});
  const char* const problem = database_->bulk(column_.get(), key_bytes_, dim_ * static_cast<int64_t>(sizeof(float)),
                                              sources.data(), std::ssize(sources));
  for (const LoadedRows& one : loaded)
    if (one.error) std::rethrow_exception(one.error);
  check_rocks(problem, folder_);
  int64_t rows = 0;
  for (const LoadedRows& one : loaded) rows += one.count;
  rows_ = rows;
}

int64_t RocksTable::counted() const {
  int64_t rows = 0;
  const RocksSink sink{&rows, [](void* self, const void*, int64_t, const void*, int64_t) {
                         ++*static_cast<int64_t*>(self);
                         return true;
                       }};
  check_rocks(database_->each(column_.get(), "", sink), folder_);
  return rows;
}

int64_t RocksTable::size() const {
  finish();
  if (rows_ < 0) rows_ = counted();
  return rows_;
}

void RocksTable::each(const RowSink& sink) {
  finish();
  PiecesOfColumn pieces{sink, dim_};
  check_rocks(database_->each(column_.get(), "", {&pieces, PiecesOfColumn::take}), folder_);
  if (!pieces.problem.empty()) check_rocks(pieces.problem.c_str(), folder_);
  pieces.flush();
}

LevelStatistics RocksTable::statistics() const {
  return {.rows = size(), .bytes = database_->bytes(column_.get()), .asked = asked_.load(), .found = found_.load()};
}

std::optional<int64_t> RocksTable::collect(std::vector<RocksChange>& changes) {
  std::vector<int64_t> put, gone;
  for (const auto& [key, at] : pending_) {
    (at == kGone ? gone : put).push_back(key);
    const bool removed = at == kGone;
    changes.push_back({.column = column_.get(),
                       .key = &key,
                       .key_bytes = key_bytes_,
                       .value = removed ? nullptr : rows_put_.data() + at,
                       .value_bytes = removed ? 0 : dim_ * static_cast<int64_t>(sizeof(float))});
  }
  if (rows_ < 0) return std::nullopt;
  return rows_ + static_cast<int64_t>(put.size()) - count(put) - count(gone);
}

void RocksTable::committed(std::optional<int64_t> rows) {
  rows_ = rows.value_or(-1);
  fresh_ = false;
  roll_back();
}

void RocksTable::roll_back() {
  pending_.clear();
  rows_put_.clear();
}

}  // namespace hctr
