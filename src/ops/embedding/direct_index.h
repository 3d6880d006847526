// Maps keys to row numbers by arithmetic, for tables whose keys are integers in known ranges. The map needs no search
// and no memory per key.
#pragma once

#include "core/base/platform.h"
#include "core/device/op.h"
#include "ops/embedding/key_batch.h"

namespace hctr::ops {

/// The key and the slot that a row belongs to.
struct RowOwner {
  int64_t key;
  int32_t slot;  ///< 0 if slots share their rows
};

/// A key range of a slot: the `count` keys first, first + step, ... have the rows base + 1, base + 2, ....
struct KeySpan {
  static constexpr int64_t kElsewhere = 0;  // a value of `step`: another table has the keys of the slot
  int64_t first, count, base;
  int64_t step = 1;  // difference of adjacent keys: the number of ranks that have the slot's keys
};

/// A direct index, which a table may use instead of a hash index. Row 0 means "no row".
struct DirectIndex {
  const KeySpan* ranges = nullptr;  // [slots] ordered by slot and by row; a single range if slots share their rows
  int64_t slots = 0;                // number of ranges
  bool by_slot = false;
  // For tables whose rows are moved in memory. A row number is the result of the arithmetic; a place is the position of
  // the row in the arrays.
  const int32_t* places = nullptr;   // [rows + 1] place of each row number; null: the place equals the row number
  const int32_t* numbers = nullptr;  // [rows + 1] row number at each place

  /// Returns the place of the key's row, or 0 if the key is outside the range of its slot.
  HCTR_HD int32_t row(int64_t key, int32_t slot) const {
    const KeySpan range = ranges[by_slot ? slot : 0];
    if (key < range.first || range.step == KeySpan::kElsewhere) return 0;
    uint64_t n = static_cast<uint64_t>(key) - static_cast<uint64_t>(range.first);
    if (range.step != 1) {
      if (n % static_cast<uint64_t>(range.step) != 0) return 0;
      n /= static_cast<uint64_t>(range.step);
    }
    if (n >= static_cast<uint64_t>(range.count)) return 0;
    const int64_t number = range.base + static_cast<int64_t>(n) + 1;
    return places ? places[number] : static_cast<int32_t>(number);
  }
  HCTR_HD bool elsewhere(int32_t slot) const { return ranges[by_slot ? slot : 0].step == KeySpan::kElsewhere; }
  /// The inverse of row(): returns the key and the slot of the row at place `row`. The row must exist.
  HCTR_HD RowOwner owner(int64_t row) const {
    if (numbers) row = numbers[row];
    int64_t low = 0, high = slots - 1;
    // finds the last range whose base is below the row; ranges without rows have the base of the next range
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      if (ranges[middle].base < row)
        low = middle;
      else
        high = middle - 1;
    }
    return {ranges[low].first + (row - 1 - ranges[low].base) * ranges[low].step,
            by_slot ? static_cast<int32_t>(low) : 0};
  }
};

/// The first key that a kernel found outside the range of the key's slot. This state is on the device.
struct OutOfRangeState {
  int32_t first = INT32_MAX;  ///< lowest position of an out-of-range key, in the first batch with such a key
  int32_t reported = 0;       ///< 1: already reported to the host
};
/// The report to the host, in page-locked memory.
struct OutOfRangeKey {
  int64_t key;
  int32_t slot;
  int32_t found;  ///< 1: key and slot are valid
};

/// Sets rows[p] to the place of the row of key p. Sets rows[p] to 0 past the last key, for a key whose slot belongs to
/// another table, and for a key outside its range. In the last case, also records the position p.
HCTR_OP(void direct_rows(Context&, DirectIndex, KeyBatch, OutOfRangeState*, int32_t* rows))

/// Reports to the host, once, the first key outside the range of its slot. Writes host->found last.
HCTR_OP(void report_out_of_range(Context&, KeyBatch, OutOfRangeState*, OutOfRangeKey* host))

}  // namespace hctr::ops
