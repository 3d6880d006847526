// From keys to row numbers by arithmetic, for tables whose keys are numbers in known ranges: no search, no memory per
// key.
#pragma once

#include "core/base/platform.h"
#include "core/device/op.h"
#include "ops/embedding/key_batch.h"

namespace hctr::ops {

/// The key, and slot, of a row.
struct RowOwner {
  int64_t key;
  int32_t slot;  ///< 0 where rows belong to keys alone
};

/// The keys first, first + step, ... (`count` of them) of a slot have rows base + 1, base + 2, ....
struct KeySpan {
  static constexpr int64_t kElsewhere = 0;  // a value of `step`: keys of the slot belong to another table
  int64_t first, count, base;
  int64_t step = 1;  // the ranks that the keys are spread over
};

/// Replaces a hash index. Row 0 is not a row, as there.
struct DirectIndex {
  const KeySpan* ranges =
      nullptr;        // [slots] in the order of slots and of rows; one for all slots where rows belong to keys alone
  int64_t slots = 0;  // number of ranges
  bool by_slot = false;
  // If rows change places: row numbers are results of this arithmetic, places are the positions of the rows' elements:
  const int32_t* places = nullptr;   // [rows + 1] by row number; null: they are the same
  const int32_t* numbers = nullptr;  // [rows + 1] by place

  /// The place of the row of a key; 0 when it lies outside its range.
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
  /// The reverse, for rows that exist.
  HCTR_HD RowOwner owner(int64_t row) const {
    if (numbers) row = numbers[row];
    int64_t low = 0, high = slots - 1;
    while (low <
           high) {  // the last range that starts at or before the row: those without rows end where the next begins
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

/// Keys outside their ranges, as kernels find them. On the device.
struct OutOfRangeState {
  int32_t first = INT32_MAX;  ///< position of the first one in the first batch that has any
  int32_t reported = 0;       ///< 1: it has been reported to the host
};
/// The first of them, as reported to the host; in page-locked memory.
struct OutOfRangeKey {
  int64_t key;
  int32_t slot;
  int32_t found;  ///< 1: key and slot are valid
};

/// rows[p] = the row of key p of the batch; 0 past the last key, for keys of slots of other tables, and for a key
/// outside its range, whose position is recorded.
HCTR_OP(void direct_rows(Context&, DirectIndex, KeyBatch, OutOfRangeState*, int32_t* rows))

/// Reports the first key outside its range to the host, once: *host is complete before its `found` is set.
HCTR_OP(void report_out_of_range(Context&, KeyBatch, OutOfRangeState*, OutOfRangeKey* host))

}  // namespace hctr::ops
