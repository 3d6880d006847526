// One table of a version: its rows in the levels of a store, and look-ups that pass through them.
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

/// Any number of versions may share it. If rows belong to slot and key, each slot has a separate namespace.
class StoreTable {
 public:
  struct About {
    std::string name;
    int64_t dim = 0;
    bool by_slot = false;
    float default_value = 0;
    std::string content{};  ///< see StoreTableSource; empty after an update
    std::string space{};    ///< the namespace, or the prefix of those of slots
  };
  /// `levels`: in look-up order; must outlive it.
  StoreTable(About about, std::vector<StoreLevel*> levels) : about_(std::move(about)), levels_(std::move(levels)) {}

  About about() const;
  const std::string& name() const { return about_.name; }
  int64_t dim() const { return about_.dim; }
  float default_value() const { return about_.default_value; }

  /// As StoreReading::get() and get_rows(); found: [keys]. `pending`, which may be null, hides rows of the levels.
  /// Returns how many unique keys have no row.
  int64_t get(int32_t slot, std::span<const int64_t> keys, float* rows, int64_t stride, uint8_t* found,
              const PendingRows* pending);
  int64_t get_rows(int32_t slot, std::span<const int64_t> keys, std::vector<float>& rows, int32_t* row_of,
                   const PendingRows* pending);
  /// How many of these, each once, have rows.
  int64_t count(int32_t slot, std::span<const int64_t> keys) const;
  int64_t rows() const;
  /// Passes all rows to a sink, slot by slot.
  void each(const std::function<void(int32_t slot, std::span<const int64_t>, std::span<const float>)>&) const;
  StoreTableStatistics statistics() const;
  /// The existing slots, with their namespaces.
  std::vector<std::pair<int32_t, std::string>> spaces() const;

  // Called by one thread at a time. `level`: an index of `levels`.
  /// Creates the namespace of a slot. `expected`: number of rows.
  void open(int32_t slot, int64_t expected);
  /// The same, with the rows that the lowest level has already.
  void adopt();
  /// Before and after the calls below of an update: look-ups between take no rows into levels above.
  void begin_update();
  void end_update();
  void fill(size_t level, int32_t slot, std::span<const int64_t> keys, const float* rows);
  /// The same for an update: a cache level changes only rows that it has.
  void put(size_t level, int32_t slot, std::span<const int64_t> keys, const float* rows);
  void remove(size_t level, int32_t slot, std::span<const int64_t> keys);
  /// Copies the rows of the lowest level to those above that want them.
  void warm();
  /// Opens the tables of the levels again by name.
  void reopen();
  void drop();

 private:
  using Tables = std::vector<std::shared_ptr<LevelTable>>;  // tables of the levels
  struct Space {
    std::string name;
    std::shared_ptr<const Tables> levels;
  };
  /// Of keys that are all different; hit: [keys]. Returns how many have no row, and counts them. `keys`: of the
  /// request.
  int64_t find_rows(int32_t slot, KeysToFind, float* rows, int64_t stride, uint8_t* hit, const PendingRows* pending,
                    size_t keys);
  /// Null: the slot has none.
  std::shared_ptr<const Tables> find(int32_t slot) const;
  Tables open_levels(const std::string& space, int64_t expected) const;
  void offer(const Tables&, size_t answered_by, std::span<const int64_t> keys, const float* rows, uint64_t updates);

  About about_;
  std::vector<StoreLevel*> levels_;
  mutable std::shared_mutex slots_;  // guards `spaces_` and about_.content
  std::map<int32_t, Space> spaces_;
  std::mutex changing_;               // held to offer rows, and to update
  std::atomic<uint64_t> updates_{0};  // odd during an update
  std::atomic<int64_t> asked_{0}, unique_{0}, defaults_{0};
};

}  // namespace hctr
