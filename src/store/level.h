// A level of a store: table rows by key, in memory or in another storage.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hctr/error.h"
#include "store/concurrent_rows.h"

namespace hctr {

class ThreadPool;

struct LevelStatistics {
  int64_t rows = 0, bytes = 0;   ///< bytes: size of rows, keys and their index in memory or in the file
  int64_t asked = 0, found = 0;  ///< asked: number of keys looked up; found: how many of them had a row
  int64_t failed = 0;            ///< number of keys whose look-up failed, or whose change may be lost
};

/// Receives rows: keys [n], rows [n, dim].
using RowSink = std::function<void(std::span<const int64_t> keys, std::span<const float> rows)>;

/// The rows of one namespace in a level: maps keys to rows of `dim` floats. Any thread may call get() at any time, and
/// reads consistent rows. The owner of the level serializes changes.
class LevelTable {
 public:
  virtual ~LevelTable() = default;
  virtual int64_t dim() const = 0;
  /// For each key with found[i] == 0 that has a row: copies the row and sets found[i] to 1. Returns the number of rows
  /// found. Errors: Error(io); Error(data) if the level is a file.
  virtual int64_t get(KeysToFind, float* rows, int64_t stride, uint8_t* found) = 0;
  virtual bool contains(int64_t key) = 0;
  /// The number of keys that have rows. Keys must be distinct.
  virtual int64_t count(std::span<const int64_t> keys) {
    return std::count_if(keys.begin(), keys.end(), [this](int64_t key) { return contains(key); });
  }
  /// Adds or replaces rows. rows: [keys, dim]. Errors: Error(io).
  virtual void put(std::span<const int64_t> keys, const float* rows) = 0;
  /// Like put(), for loading a table; a level may use the threads.
  virtual void put_all(std::span<const int64_t> keys, const float* rows, ThreadPool& /*threads*/) { put(keys, rows); }
  virtual void remove(std::span<const int64_t> keys) = 0;
  /// Like put(), for an update: a bounded level need not add new rows.
  virtual void update(std::span<const int64_t> keys, const float* rows) {
    if (complete()) return put(keys, rows);
    for (size_t i = 0; i < keys.size(); ++i)
      if (contains(keys[i])) put(keys.subspan(i, 1), rows + static_cast<int64_t>(i) * dim());
  }
  /// Like update(); a level may use the threads.
  virtual void update_all(std::span<const int64_t> keys, const float* rows, ThreadPool& /*threads*/) {
    constexpr size_t kRowsAtOnce = 1024;
    for (size_t first = 0; first < keys.size(); first += kRowsAtOnce)
      update(keys.subspan(first, std::min(kRowsAtOnce, keys.size() - first)),
             rows + static_cast<int64_t>(first) * dim());
  }
  /// Whether this table receives all rows that the store loads, also when the store opens.
  virtual bool is_filled() const { return true; }
  /// Offers rows that a lower level has found. The table may add them.
  virtual void offer(std::span<const int64_t> /*keys*/, const float* /*rows*/) {}
  /// Whether the table keeps all rows. Bounded levels drop some.
  virtual bool complete() const { return true; }
  virtual int64_t size() const = 0;
  virtual void each(const RowSink&) = 0;
  virtual LevelStatistics statistics() const = 0;
  /// Compares two states of a table, in a level whose tables are snapshots. `before`: the earlier state. Passes new and
  /// changed rows to `changed`. Adds the keys that only `before` has to `removed`.
  virtual void differences(LevelTable& /*before*/, const RowSink& /*changed*/, std::vector<int64_t>& /*removed*/) {
    throw Error(Kind::usage, "the tables of this level have no earlier states");
  }
};

class StoreLevel {
 public:
  virtual ~StoreLevel() = default;
  virtual std::string name() const = 0;  ///< for example "memory", "redis", "file", "rocksdb"
  /// The table of a namespace. Creates the table if the namespace has none. `expected`: number of rows to reserve
  /// memory for. Errors: Error(data) if the existing table has rows of another size.
  virtual std::shared_ptr<LevelTable> table(const std::string& space, int64_t dim, int64_t expected) = 0;
  /// Like table(), for rows that another program has written. drop() does not remove these rows. Errors: Error(config)
  /// if the level does not support this, or if the namespace has no rows.
  virtual std::shared_ptr<LevelTable> adopt(const std::string& space, int64_t /*dim*/) {
    throw Error(Kind::config, "the level '" + name() + "' cannot use existing rows of '" + space + "'");
  }
  /// Removes a table. Readers that hold the table can still use it.
  virtual void drop(const std::string& space) = 0;
  /// Whether changes to committed tables become visible at the next commit. If false, they are visible immediately.
  virtual bool changes_at_commit() const { return false; }
  /// Whether the level supports hold(), which allows other commits while tables change.
  virtual bool holds() const { return !changes_at_commit(); }
  /// Excludes the changes of this namespace from commits until release().
  virtual void hold(const std::string& /*space*/) {}
  virtual void release(const std::string& /*space*/) {}
  virtual bool writable() const { return true; }
  virtual std::string why_read_only() const { return "the store's level '" + name() + "' is open read-only"; }
  /// loading(): whether another process is loading the models of this level. That process calls loaded() at the end.
  virtual bool loading() const { return false; }
  virtual void loaded() {}
  /// Whether refresh() opens new tables, so that tables opened before keep the rows of an earlier commit.
  virtual bool tables_are_snapshots() const { return false; }
  /// The note of the last commit(), also after a restart; empty without a commit.
  virtual std::string note() const { return ""; }
  /// Makes all changes since the last call visible and durable together. `note`: stored for the owner.
  virtual void commit(const std::string& /*note*/) {}
  /// Reverts the changes since the last commit.
  virtual void roll_back() {}
  /// For a level that another process changes: reads that process's commits. Returns whether the note has changed.
  virtual bool refresh() { return false; }
  /// Reads every row and verifies its checksum. Returns the number of rows. Errors: Error(data) with the name of the
  /// damaged part.
  virtual int64_t verify() { throw Error(Kind::usage, "the level '" + name() + "' has nothing to verify"); }
  /// Rewrites the level without free slots. Returns the number of freed bytes. No other call may be in progress.
  virtual int64_t compact() { throw Error(Kind::usage, "the level '" + name() + "' has nothing to compact"); }
};

}  // namespace hctr
