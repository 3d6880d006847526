#include "store/memory_level.h"

#include <algorithm>
#include <atomic>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr int64_t kRowsForThreads = 1024;  // for fewer rows, the calling thread works alone

const uint32_t* words_of(const float* rows) { return reinterpret_cast<const uint32_t*>(rows); }

class MemoryTable : public LevelTable {
 public:
  MemoryTable(int64_t dim, int64_t expected, int64_t most_rows)
      : most_rows_(most_rows), rows_(dim, most_rows > 0 ? std::min(expected, most_rows) : expected) {}

  int64_t dim() const override { return rows_.words(); }
  int64_t get(KeysToFind wanted, float* rows, int64_t stride, uint8_t* found) override {
    const auto done = std::count_if(found, found + wanted.keys.size(), [](uint8_t one) { return one != 0; });
    const int64_t hits = rows_.find(wanted, reinterpret_cast<uint32_t*>(rows), stride, found);
    asked_.fetch_add(static_cast<int64_t>(wanted.keys.size()) - done, std::memory_order_relaxed);
    found_.fetch_add(hits, std::memory_order_relaxed);
    return hits;
  }
  bool contains(int64_t key) override { return rows_.contains(key); }
  int64_t count(std::span<const int64_t> keys) override { return rows_.count(keys); }
  void put(std::span<const int64_t> keys, const float* rows) override {
    if (most_rows_ == 0) return rows_.put(keys, words_of(rows));
    for (size_t i = 0; i < keys.size(); ++i) {
      const uint32_t* const row = words_of(rows) + static_cast<int64_t>(i) * rows_.words();
      if (rows_.size() >= most_rows_)
        rows_.put_in_place(keys[i], row);
      else
        rows_.put(keys[i], row);
    }
  }
  void put_all(std::span<const int64_t> keys, const float* rows, ThreadPool& threads) override {
    if (most_rows_ > 0 || std::ssize(keys) < kRowsForThreads) return put(keys, rows);
    rows_.put_all(keys, words_of(rows), threads);
  }
  void update_all(std::span<const int64_t> keys, const float* rows, ThreadPool& threads) override {
    if (!complete()) return LevelTable::update_all(keys, rows, threads);
    put_all(keys, rows, threads);
  }
  void remove(std::span<const int64_t> keys) override {
    for (const int64_t key : keys) rows_.remove(key);
  }
  void offer(std::span<const int64_t> keys, const float* rows) override {
    if (most_rows_ > 0) put(keys, rows);
  }
  bool complete() const override { return most_rows_ == 0; }
  int64_t size() const override { return rows_.size(); }
  void each(const RowSink& sink) override {
    rows_.each([&](std::span<const int64_t> keys, std::span<const uint32_t> rows) {
      sink(keys, {reinterpret_cast<const float*>(rows.data()), rows.size()});
    });
  }
  LevelStatistics statistics() const override {
    return {.rows = rows_.size(), .bytes = rows_.bytes(), .asked = asked_.load(), .found = found_.load()};
  }

 private:
  int64_t most_rows_;
  ConcurrentRows rows_;
  std::atomic<int64_t> asked_{0}, found_{0};
};

}  // namespace

std::shared_ptr<LevelTable> MemoryLevel::table(const std::string& space, int64_t dim, int64_t expected) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<LevelTable>& table = tables_[space];
  if (!table) table = std::make_shared<MemoryTable>(dim, expected, most_rows_);
  HCTR_EXPECT(table->dim() == dim, "rows of ", dim, " elements in '", space, "', which has ", table->dim());
  return table;
}

void MemoryLevel::drop(const std::string& space) {
  const std::lock_guard lock(mutex_);
  tables_.erase(space);
}

}  // namespace hctr
