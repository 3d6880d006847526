// How often rows are used, by which they change places between a device and its host.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/buffer.h"
#include "ops/embedding/row_swap.h"

namespace hctr {

struct RowsInUse {
  ops::RowUses rows;           // with `reads`; first_on_host is 0 until some row has memory of the host
  int32_t* numbers = nullptr;  // of direct keys, with `places`
  Buffer reads, pairs, scratch, places;
  int64_t most_swaps = 0, batches = 0, calls = 0, moved = 0;  // batches: since the last call of swap_by_use()

  int64_t bytes() const {
    return static_cast<int64_t>(reads.bytes() + pairs.bytes() + scratch.bytes() + places.bytes());
  }
};

/// The most swaps at a time of a table with addresses for so many rows. A swap reads and writes one row of the host. At
/// 30 million a second of each, so many take 9 ms for each array of rows: a few per cent of the 128 steps between two
/// calls, while rows still find their places.
constexpr int64_t most_swaps(int64_t rows) { return std::min(int64_t{1} << 17, rows); }

}  // namespace hctr
