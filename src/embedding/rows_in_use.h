// How often rows are used, by which they change places between a device and its host.
#pragma once

#include <cstdint>

#include "device/buffer.h"
#include "ops/embedding/row_swap.h"

namespace hctr {

struct RowsInUse {
  ops::RowUses rows;           // with `reads`; first_on_host is 0 until some row has memory of the host
  int32_t* numbers = nullptr;  // of direct keys, with `places`
  Buffer reads, pairs, scratch, places;
  int64_t most_swaps = 0, batches = 0, calls = 0, moved = 0;  // batches: since the last call of swap_by_use()
};

}  // namespace hctr
