// Swaps rows by access counts: often used rows in host memory with rarely used rows in device memory.
//
// Swaps run only between steps, while no other operation uses the table. The selection of rows depends only on counts
// and row numbers, so that equal batches give equal swaps.
#pragma once

#include <array>
#include <cstddef>

#include "core/device/op.h"
#include "ops/embedding/access_stats.h"
#include "ops/embedding/embedding_group.h"

namespace hctr::ops {

/// Access counts that batches increment.
struct RowUses {
  uint8_t* uses = nullptr;    ///< [rows] number of batches that contained the row; saturates at 255
  uint64_t* reads = nullptr;  ///< occurrences of keys: [0] in all rows, [1] in rows below first_on_host
  int64_t first_on_host = 0;  ///< all rows below this number are in device memory

  HCTR_HD static uint8_t one_more(uint8_t uses) { return static_cast<uint8_t>(uses + (uses < 255)); }
};

/// Increments `uses` for each distinct row of a grouped batch, and adds the row's occurrences to `reads`.
HCTR_OP(void add_uses(Context&, RowGroups, int64_t key_capacity, RowUses))

/// UseCounts[u] = number of rows with u uses.
using UseCounts = std::array<int64_t, 256>;

/// Swaps the `count` most used rows on the host with the `count` least used rows on the device. On each side, the plan
/// contains all rows whose uses are beyond a limit. Rows whose uses equal the limit fill the plan up to `count`, in the
/// order of row numbers.
struct SwapPlan {
  int64_t count = 0;
  /// all host rows above hot_limit, and all device rows below cold_limit, are swapped
  int hot_limit = 0, cold_limit = 0;
  /// hot_beyond: number of host rows above hot_limit; cold_beyond: number of device rows below cold_limit
  int64_t hot_beyond = 0, cold_beyond = 0;
};

/// Plans the useful swaps, at most `most`. A swap is useful if the host row has at least 2 u + 2 uses, where u is the
/// number of uses of the device row. This margin prevents rows with similar uses from swapping back and forth. With
/// this margin, a swap also repays the cost of moving two rows if the rows' uses stay similar in the next period.
/// `always`: also plans swaps that are not useful.
SwapPlan plan_swaps(const UseCounts& on_device, const UseCounts& on_host, int64_t most, bool always = false);

/// Bytes of scratch for tables of up to `rows` rows.
size_t swap_scratch_bytes(Device, int64_t rows);
namespace cuda {
size_t swap_scratch_bytes(int64_t rows);
}

/// counts[u] = number of rows in [first, last] that have u uses. Synchronizes the stream.
HCTR_OP(void count_uses(Context&, const uint8_t* uses, int64_t first, int64_t last, std::byte* scratch,
                        UseCounts& counts))
/// Writes to `out` the first `most` rows of [first, last] whose uses are in [low, high], in ascending order. At least
/// `most` such rows must exist.
HCTR_OP(void select_by_uses(Context&, const uint8_t* uses, int64_t first, int64_t last, int low, int high, int64_t most,
                            std::byte* scratch, int32_t* out))
/// Swaps rows one[i] and other[i] of an array with `bytes` bytes per row. All rows are distinct.
HCTR_OP(void swap_rows(Context&, const int32_t* one, const int32_t* other, int64_t count, void* column, int64_t bytes))
/// For tables with a direct index: sets places[numbers[rows[i]]] = rows[i] for the rows that have moved.
HCTR_OP(void note_places(Context&, const int32_t* rows, int64_t count, const int32_t* numbers, int32_t* places))
/// rows[i] = places[rows[i]].
HCTR_OP(void find_places(Context&, const int32_t* places, int64_t count, int32_t* rows))
/// Sets `bits` in marks[rows[i]].
HCTR_OP(void mark_rows(Context&, const int32_t* rows, int64_t count, uint8_t* marks, uint8_t bits))
/// Halves the uses of rows 1 to `rows`.
HCTR_OP(void halve_uses(Context&, int64_t rows, uint8_t* uses))

}  // namespace hctr::ops
