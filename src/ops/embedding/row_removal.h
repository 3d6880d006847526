// Rows of a table that leave, and how the others close up, so that rows stay numbered 1, 2, ... without gaps.
//
// Between steps: nothing else may use the table. The host runs these one after the other and waits for their counts;
// they are never part of a recorded step. Which rows leave is decided by what is known of them, not by their numbers,
// which differ from device to device.
#pragma once

#include <cstddef>

#include "device/op.h"

namespace hctr::ops {

enum class Fate : uint8_t { open, stays, leaves };

/// The order in which rows leave: the lowest (score, slot, key) first. No two rows have one rank.
struct RowRanks {
  struct Rank {
    uint64_t high, low;
    HCTR_HD bool operator<=(const Rank& other) const {
      return high != other.high ? high < other.high : low <= other.low;
    }
  };
  const int64_t* keys = nullptr;
  const int32_t* slots = nullptr;    // null: rows belong to keys alone
  const uint32_t* scores = nullptr;  // null: all alike
  bool highest_first = false;        // the other way round

  HCTR_HD Rank of(int64_t row) const {
    const uint64_t score = scores ? scores[row] : 0, slot = slots ? static_cast<uint32_t>(slots[row]) : 0;
    const uint64_t high = score << 32 | slot,
                   low = static_cast<uint64_t>(keys[row]) ^ uint64_t { 1 } << 63;  // negative keys first
    return highest_first ? Rank{~high, ~low} : Rank{high, low};
  }
};

/// Row from[i] becomes row to[i], for i below count; both ascending, no row in both. Rows 1 to `rows` are left.
struct RowMoves {
  const int32_t *from = nullptr, *to = nullptr;
  int64_t count = 0, rows = 0;
};

/// What removal works in: pieces of one block of removal_bytes(device, rows) bytes, aligned to 256.
struct RemovalMemory {
  RemovalMemory(std::byte* block, int64_t rows);
  static constexpr int64_t kCounters = 256;

  Fate* fates;         // [rows + 1]
  int32_t *from, *to;  // [rows / 2 + 1]
  uint32_t* counters;  // [kCounters]
  std::byte* temporary;
};
size_t removal_bytes(Device, int64_t rows);
namespace cuda {
size_t removal_temporary_bytes(int64_t rows);
}

/// The fate of every row that stands in `rows`, but row 0: it stays.
HCTR_OP(void rows_stay(Context&, const int32_t* rows, int64_t count, Fate* fates))
/// Of rows first to last: those whose value is below `bound` leave.
HCTR_OP(void rows_below_leave(Context&, const uint32_t* values, uint32_t bound, int64_t first, int64_t last,
                              Fate* fates))
/// Of rows first to last whose fate is open, the `number` with the lowest ranks leave; so many there must be.
HCTR_OP(void lowest_rows_leave(Context&, RowRanks, int64_t first, int64_t last, int64_t number, const RemovalMemory&))
/// How many of rows 1 to `rows` have this fate.
HCTR_OP(void count_fates(Context&, Fate, int64_t rows, const RemovalMemory&, int64_t& count))

/// How the table closes up: places of rows that leave, the lower ones, are taken by the rows that stay behind the new
/// end. Each row moves once at most. `moves` points into `memory`.
HCTR_OP(void plan_moves(Context&, int64_t rows, const RemovalMemory& memory, RowMoves& moves))
/// Carries it out on one array with `bytes` bytes per row.
HCTR_OP(void move_rows(Context&, RowMoves, void* column, int64_t bytes))
/// rows[i] becomes the new number of that row; of a row that left, `instead`, and then *replaced grows by one (null:
/// not counted).
HCTR_OP(void follow_moves(Context&, RowMoves, const Fate* fates, int32_t* rows, int64_t count, int32_t instead,
                          uint64_t* replaced))

}  // namespace hctr::ops
