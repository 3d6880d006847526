// The changes of an update to one table, by key. Look-ups read them while the levels apply the update.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "store/level.h"
#include "store/table_sources.h"

namespace hctr {

/// Immutable after construction, so any number of threads may read it.
class PendingRows {
 public:
  /// Values of found[i]. LevelTable::get() skips keys with either value, because levels below may still have old rows
  /// of these keys.
  static constexpr uint8_t kFound = 1, kRemoved = 2;

  /// The changes must outlive the object.
  PendingRows(const ChangesOfTable&, int64_t dim);
  /// Whether the changes have several rows of a key, or remove a key several times, or both remove and change it.
  bool has_duplicates() const { return duplicates_; }
  /// Removes duplicates from the changes: all rows of a key except the last, and removals without effect. Afterwards
  /// this object must not be used.
  void remove_duplicates_from(ChangesOfTable&) const;

  /// Like LevelTable::get(). Also sets found[i] to kRemoved for removed keys.
  int64_t get(int32_t slot, KeysToFind, float* rows, int64_t stride, uint8_t* found) const;

 private:
  struct Slot {
    const ChangedRows* changes;
    int shift;
    std::vector<int64_t> heads;  // open-addressing table: index in `keys` + 1, or -(index in `removed` + 1)
    int64_t key_at(int64_t head) const {
      return head > 0 ? changes->keys[static_cast<size_t>(head - 1)] : changes->removed[static_cast<size_t>(-head - 1)];
    }
    /// The slot in `heads` with the key, or the free slot for it.
    size_t find(int64_t key) const { return find(key, first(key)); }
    size_t find(int64_t key, size_t from) const;
    size_t first(int64_t key) const { return (static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15u) >> shift; }
  };
  int64_t dim_;
  bool duplicates_ = false;
  std::map<int32_t, Slot> slots_;
};

}  // namespace hctr
