// The rows of a table that an update changes, by key, while the levels take them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "store/level.h"
#include "store/table_sources.h"

namespace hctr {

/// Never changes once it is made: any number of threads read it.
class PendingRows {
 public:
  /// What LevelTable::get() skips: levels below may still have rows of such keys.
  static constexpr uint8_t kFound = 1, kRemoved = 2;

  /// The changes outlive it.
  PendingRows(const ChangesOfTable&, int64_t dim);

  /// As LevelTable::get(), and sets found[i] of a removed key to kRemoved.
  int64_t get(int32_t slot, KeysToFind, float* rows, int64_t stride, uint8_t* found) const;

 private:
  struct Slot {
    const ChangedRows* changes;
    int shift;
    std::vector<int64_t> heads;  // an open-addressing table: place in `keys` + 1, or -(place in `removed` + 1)
    int64_t key_at(int64_t head) const {
      return head > 0 ? changes->keys[static_cast<size_t>(head - 1)] : changes->removed[static_cast<size_t>(-head - 1)];
    }
    /// The head of a key, or the free place for it.
    size_t find(int64_t key) const;
  };
  int64_t dim_;
  std::map<int32_t, Slot> slots_;
};

}  // namespace hctr
