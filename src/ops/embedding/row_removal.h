// Removes rows from a table and compacts the remaining rows, which then are numbered 1, 2, ... without gaps.
//
// The functions run between steps while no other operation uses the table, or during queued steps if no row of these
// steps is removed. The host calls the functions sequentially and waits for their counts; they are never part of a
// recorded step. The selection of rows depends on keys and access statistics, but not on row numbers, which differ
// between devices.
#pragma once

#include <cstddef>

#include "core/device/op.h"

namespace hctr::ops {

enum class Fate : uint8_t { open, stays, leaves };

/// Whether `step` is not before `other`; both are modulo 2^32.
HCTR_HD inline bool not_before(uint32_t step, uint32_t other) { return step - other < 1u << 31; }

/// unit * log2(1 + count), interpolated linearly between powers of two. Every device computes the same integer.
HCTR_HD inline uint64_t scaled_log2(uint32_t count, uint32_t unit) {
  const uint64_t value = uint64_t{count} + 1;
  int whole = 0;
  while (value >> (whole + 1) != 0) ++whole;
  return static_cast<uint64_t>(whole) * unit + ((value - (uint64_t{1} << whole)) * unit >> whole);
}

/// The order of removal: rows with the lowest (score, slot, key) are removed first. Ranks are distinct.
struct RowRanks {
  struct Rank {
    uint64_t high, low;
    HCTR_HD bool operator<=(const Rank& other) const {
      return high != other.high ? high < other.high : low <= other.low;
    }
  };
  const int64_t* keys = nullptr;
  const int32_t* slots = nullptr;    // null: slots share rows
  const uint32_t* scores = nullptr;  // null: all scores are equal
  bool highest_first = false;        // reverses the order
  // unless null, adds scaled_log2(uses, per_doubling) to the score; the sum saturates
  const uint32_t* uses = nullptr;
  uint32_t per_doubling = 0;

  HCTR_HD Rank of(int64_t row) const {
    const uint64_t slot = slots ? static_cast<uint32_t>(slots[row]) : 0;
    uint64_t score = scores ? scores[row] : 0;
    if (uses) score += scaled_log2(uses[row], per_doubling);
    if (score > 0xffffffffu) score = 0xffffffffu;
    const uint64_t high = score << 32 | slot,
                   low = static_cast<uint64_t>(keys[row]) ^ uint64_t { 1 } << 63;  // orders negative keys first
    return highest_first ? Rank{~high, ~low} : Rank{high, low};
  }
};

/// Row from[i] becomes row to[i], for i < count. Both lists are ascending and disjoint. Rows 1 to `rows` remain.
struct RowMoves {
  const int32_t *from = nullptr, *to = nullptr;
  int64_t count = 0, rows = 0;
};

/// Scratch memory of a removal: arrays in one allocation of removal_bytes(device, rows) bytes, aligned to 256.
struct RemovalMemory {
  RemovalMemory(std::byte* block, int64_t rows);
  static constexpr int64_t kCounters = 256;
  /// Scratch for the selection of rows only, without moves.
  RemovalMemory(Fate* fates_, uint32_t* counters_) : fates(fates_), counters(counters_) {}

  Fate* fates;                             // [rows + 1]
  int32_t *from = nullptr, *to = nullptr;  // [rows / 2 + 1]
  uint32_t* counters;                      // [kCounters]
  std::byte* temporary = nullptr;
};
size_t removal_bytes(Device, int64_t rows);
namespace cuda {
size_t removal_temporary_bytes(int64_t rows);
}

/// Sets fates[rows[i]] to the given fate; skips row 0.
HCTR_OP(void set_fates(Context&, const int32_t* rows, int64_t count, Fate, Fate* fates))
/// Sets the fate of open rows in [first, last] to `stays` if they were last seen in step `since` or later, modulo 2^32.
HCTR_OP(void recent_rows_stay(Context&, const uint32_t* last_seen, uint32_t since, int64_t first, int64_t last,
                              Fate* fates))
/// Sets the fate of rows 1 to `rows` from `stays` back to `open`.
HCTR_OP(void open_fates(Context&, int64_t rows, Fate* fates))
/// Sets the fate of rows in [first, last] to `leaves` if values[row] is below `bound`.
HCTR_OP(void rows_below_leave(Context&, const uint32_t* values, uint32_t bound, int64_t first, int64_t last,
                              Fate* fates))
/// Sets the fate of the `number` lowest-ranked open rows in [first, last] to `leaves`. At least `number` open rows must
/// exist.
HCTR_OP(void lowest_rows_leave(Context&, RowRanks, int64_t first, int64_t last, int64_t number, const RemovalMemory&))
/// Counts the rows 1 to `rows` with this fate.
HCTR_OP(void count_fates(Context&, Fate, int64_t rows, const RemovalMemory&, int64_t& count))

/// Plans the compaction: remaining rows beyond the new end move to the positions of removed rows before the new end.
/// Each row moves at most once. `moves` points into `memory`.
HCTR_OP(void plan_moves(Context&, int64_t rows, const RemovalMemory& memory, RowMoves& moves))
/// Moves the rows of one array with `bytes` bytes per row.
HCTR_OP(void move_rows(Context&, RowMoves, void* column, int64_t bytes))
/// Replaces rows[i] by the row's new number. If the row was removed, writes `instead` and increments *replaced (null:
/// not counted).
HCTR_OP(void follow_moves(Context&, RowMoves, const Fate* fates, int32_t* rows, int64_t count, int32_t instead,
                          uint64_t* replaced))

/// Zeroes the rows with the numbers rows[i] of an array with `bytes` bytes per row. Shapes: rows [count].
HCTR_OP(void zero_rows(Context&, const int32_t* rows, int64_t count, void* column, int64_t bytes))

}  // namespace hctr::ops
