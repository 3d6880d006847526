// A level of a store: rows of tables by key, in memory or elsewhere.
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

struct LevelStatistics {
  int64_t rows = 0, bytes = 0;   ///< bytes: size of rows, keys and their index in memory or in the file
  int64_t asked = 0, found = 0;  ///< keys
  int64_t failed = 0;            ///< keys that could not be asked for, and changes that did not arrive
};

/// Receives rows: keys [n], rows [n, dim].
using RowSink = std::function<void(std::span<const int64_t> keys, std::span<const float> rows)>;

/// The rows of one namespace in a level: keys to rows of `dim` floats. Any thread may call get() at any time, and gets
/// consistent rows; the owner of the level serializes changes.
class LevelTable {
 public:
  virtual ~LevelTable() = default;
  virtual int64_t dim() const = 0;
  /// For keys whose found[i] is 0: copies their rows, if they have any, and sets found[i] to 1. Returns the number of
  /// rows found. Errors: Error(io), Error(data) if the level is a file.
  virtual int64_t get(KeysToFind, float* rows, int64_t stride, uint8_t* found) = 0;
  virtual bool contains(int64_t key) = 0;
  /// How many of these, each once, have rows.
  virtual int64_t count(std::span<const int64_t> keys) {
    return std::count_if(keys.begin(), keys.end(), [this](int64_t key) { return contains(key); });
  }
  /// Adds or replaces rows. rows: [keys, dim]. Errors: Error(io).
  virtual void put(std::span<const int64_t> keys, const float* rows) = 0;
  virtual void remove(std::span<const int64_t> keys) = 0;
  /// The same as put(), of an update: a level that is bounded need not add rows.
  virtual void update(std::span<const int64_t> keys, const float* rows) {
    if (complete()) return put(keys, rows);
    for (size_t i = 0; i < keys.size(); ++i)
      if (contains(keys[i])) put(keys.subspan(i, 1), rows + static_cast<int64_t>(i) * dim());
  }
  /// Whether it is filled with the rows of the level below when the store opens.
  virtual bool is_filled() const { return true; }
  /// Offers rows that a lower level has answered; a level may keep them.
  virtual void offer(std::span<const int64_t> /*keys*/, const float* /*rows*/) {}
  /// Whether rows stay once put: a bounded level drops some.
  virtual bool complete() const { return true; }
  virtual int64_t size() const = 0;
  virtual void each(const RowSink&) = 0;
  virtual LevelStatistics statistics() const = 0;
};

class StoreLevel {
 public:
  virtual ~StoreLevel() = default;
  virtual std::string name() const = 0;  ///< "memory", "redis", "file", "rocksdb"
  /// The table of a namespace: the one that there is, or a new one. `expected`: rows to reserve memory for. Errors:
  /// Error(data) where there is one with other rows.
  virtual std::shared_ptr<LevelTable> table(const std::string& space, int64_t dim, int64_t expected) = 0;
  /// The same with the rows that another program has put there. drop() leaves them. Errors: Error(config) where the
  /// level cannot, or where there are none.
  virtual std::shared_ptr<LevelTable> adopt(const std::string& space, int64_t /*dim*/) {
    throw Error(Kind::config, "rows of '" + space + "' are not in the level '" + name() + "' already");
  }
  virtual std::vector<std::string> namespaces() const = 0;
  /// Readers that have the table can still use it.
  virtual void drop(const std::string& space) = 0;
  virtual bool persistent() const { return false; }
  /// Whether put() and remove() of tables that a commit has are seen from the next commit on; else at once.
  virtual bool changes_at_commit() const { return persistent(); }
  /// Whether hold() works: other commits may come while tables change.
  virtual bool holds() const { return !changes_at_commit(); }
  /// Commits leave out the changes of this namespace until it is released.
  virtual void hold(const std::string& /*space*/) {}
  virtual void release(const std::string& /*space*/) {}
  virtual bool writable() const { return true; }
  /// The note of the last commit(), after a restart too; empty where there is none.
  virtual std::string note() const { return ""; }
  /// Makes the changes since the last call visible and durable together, with a note of the owner.
  virtual void commit(const std::string& /*note*/) {}
  /// Reverts the changes since the last commit.
  virtual void roll_back() {}
  /// Of a level that another process changes: sees what that has committed. Returns whether the note is another one.
  virtual bool refresh() { return false; }
  /// Reads every row and compares it with its checksum. Returns the rows. Errors: Error(data) naming what is damaged.
  virtual int64_t verify() { throw Error(Kind::usage, "the level '" + name() + "' has nothing to verify"); }
  /// Writes what is there without free places. Returns the bytes that this has freed. No other call may be under way.
  virtual int64_t compact() { throw Error(Kind::usage, "the level '" + name() + "' has nothing to compact"); }
};

}  // namespace hctr
