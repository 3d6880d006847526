// A level of a store: rows of tables by key, in memory or elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/concurrent_rows.h"

namespace hctr {

struct LevelStatistics {
  int64_t rows = 0, bytes = 0;   ///< bytes: size of rows, keys and their index in memory or in the file
  int64_t asked = 0, found = 0;  ///< keys
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
  /// Adds or replaces rows. rows: [keys, dim]. Errors: Error(io).
  virtual void put(std::span<const int64_t> keys, const float* rows) = 0;
  virtual void remove(std::span<const int64_t> keys) = 0;
  /// Offers rows found in a lower level; a level may keep them.
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
  virtual std::string name() const = 0;  ///< "memory", "file"
  /// The table of a namespace: the existing one, or a new one. `expected`: rows to reserve memory for. Errors:
  /// Error(data) if the existing one has rows of another size.
  virtual std::shared_ptr<LevelTable> table(const std::string& space, int64_t dim, int64_t expected) = 0;
  virtual std::vector<std::string> namespaces() const = 0;
  /// Readers that have the table can still use it.
  virtual void drop(const std::string& space) = 0;
  virtual bool persistent() const { return false; }
  /// The note of the last commit(), even after a restart; empty if none.
  virtual std::string note() const { return ""; }
  /// Makes the changes since the last call visible and durable together, with a note of the owner.
  virtual void commit(const std::string& /*note*/) {}
  /// Reverts the changes since the last commit.
  virtual void roll_back() {}
};

}  // namespace hctr
