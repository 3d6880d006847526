// A table of a version: its rows in the levels of a store, and look-ups through these levels.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "hctr/store.h"
#include "store/level.h"
#include "store/pending_rows.h"

namespace hctr {

/// Several versions may share a table. If rows are identified by slot and key, each slot has its own namespace.
class StoreTable {
 public:
  struct About {
    std::string name;
    int64_t dim = 0;
    bool by_slot = false;
    float default_value = 0;
    std::string content{};  ///< StoreTableSource::content of the rows; empty after an update
    std::string space{};    ///< the namespace, or the prefix of the slots' namespaces
  };
  /// `levels`: in look-up order; must outlive the table.
  StoreTable(About about, std::vector<StoreLevel*> levels) : about_(std::move(about)), levels_(std::move(levels)) {}

  About about() const;
  const std::string& name() const { return about_.name; }
  int64_t dim() const { return about_.dim; }
  float default_value() const { return about_.default_value; }

  /// Like StoreReading::get() and get_rows(); found: [keys]. `pending` may be null; its rows take precedence over rows
  /// of the levels. Returns the number of unique keys without a row.
  int64_t get(int32_t slot, std::span<const int64_t> keys, float* rows, int64_t stride, uint8_t* found,
              const PendingRows* pending);
  /// Like get() for distinct keys. rows: [keys, dim]; rows of keys that are not found stay unchanged.
  void get_distinct(int32_t slot, std::span<const int64_t> keys, float* rows, uint8_t* found,
                    const PendingRows* pending) {
    find_rows(slot, {keys}, rows, about_.dim, found, pending, keys.size());
  }
  int64_t get_rows(int32_t slot, std::span<const int64_t> keys, std::vector<float>& rows, int32_t* row_of,
                   const PendingRows* pending);
  /// The number of keys that have rows. Keys must be distinct.
  int64_t count(int32_t slot, std::span<const int64_t> keys) const;
  int64_t rows() const;
  int64_t rows(int32_t slot) const;
  /// Passes all rows to a sink, slot by slot.
  void each(const std::function<void(int32_t slot, std::span<const int64_t>, std::span<const float>)>&) const;
  StoreTableStatistics statistics() const;
  /// Continues the counts of `before`, the same table before a refresh.
  void continue_statistics(const StoreTable& before);
  /// Compares with the same table at an earlier commit, in a store whose tables are snapshots.
  ChangesOfTable changes_since(const StoreTable& before);
  /// The existing slots and their namespaces.
  std::vector<std::pair<int32_t, std::string>> spaces() const;

  // Only one thread at a time may call the following members. `level`: index in `levels`.
  /// Creates the namespace of a slot. `expected`: number of rows to reserve memory for.
  void open(int32_t slot, int64_t expected);
  /// Like open(), for rows that the lowest level already contains.
  void adopt();
  /// Call before and after the changes of an update. Between the two calls, look-ups copy no rows to upper levels.
  void begin_update();
  void end_update();
  void fill(size_t level, int32_t slot, std::span<const int64_t> keys, const float* rows, ThreadPool&);
  /// Like fill(), for an update: a level that is a cache changes only rows that it contains.
  void put(size_t level, int32_t slot, std::span<const int64_t> keys, const float* rows, ThreadPool&);
  void remove(size_t level, int32_t slot, std::span<const int64_t> keys);
  /// Copies the rows of the lowest level to the upper levels whose LevelTable::is_filled() is true.
  void warm();
  /// Opens the tables of all levels again by name.
  void reopen();
  void drop();

 private:
  using Tables = std::vector<std::shared_ptr<LevelTable>>;  // [level] the level's table
  struct Space {
    std::string name;
    std::shared_ptr<const Tables> levels;
  };
  /// Looks up distinct keys; hit: [keys]. Returns the number of keys without a row, and adds this number to the
  /// statistics. `keys`: the number of keys in the request.
  int64_t find_rows(int32_t slot, KeysToFind, float* rows, int64_t stride, uint8_t* hit, const PendingRows* pending,
                    size_t keys);
  /// Null if the slot does not exist.
  std::shared_ptr<const Tables> find(int32_t slot) const;
  Tables open_levels(const std::string& space, int64_t expected) const;
  void offer(const Tables&, size_t answered_by, std::span<const int64_t> keys, const float* rows, uint64_t updates);

  About about_;
  std::vector<StoreLevel*> levels_;
  mutable std::shared_mutex slots_;  // guards `spaces_` and about_.content
  std::map<int32_t, Space> spaces_;
  std::mutex changing_;               // held to offer rows and to update
  std::atomic<uint64_t> updates_{0};  // odd while an update is in progress
  std::atomic<int64_t> asked_{0}, unique_{0}, defaults_{0};
};

}  // namespace hctr
