// Swaps rows by access counts: often used rows of the host with rarely used rows of the device.
//
// Only between steps, when nothing else uses the table. Rows are chosen by counts and row numbers alone, so that equal
// batches give equal swaps.
#pragma once

#include <array>
#include <cstddef>

#include "core/device/op.h"
#include "ops/embedding/access_stats.h"
#include "ops/embedding/embedding_group.h"

namespace hctr::ops {

/// Access counts that batches increment.
struct RowUses {
  uint8_t* uses = nullptr;    ///< [rows] one more for each batch that has the row; saturates
  uint64_t* reads = nullptr;  ///< [2] occurrences of keys: of all rows, and of those below first_on_host
  int64_t first_on_host = 0;  ///< rows below it are on the device whole

  HCTR_HD static uint8_t one_more(uint8_t uses) { return static_cast<uint8_t>(uses + (uses < 255)); }
};

/// Adds the uses of a batch, grouped by row.
HCTR_OP(void add_uses(Context&, RowGroups, int64_t key_capacity, RowUses))

/// How many rows have each count of uses.
using UseCounts = std::array<int64_t, 256>;

/// The count-th most used rows of the host swap with the count-th least used rows of the device: rows whose uses pass a
/// limit, and in the order of row numbers as many at the limit as are missing.
struct SwapPlan {
  int64_t count = 0;
  int hot_limit = 0, cold_limit = 0;        ///< all rows above, or below, change places
  int64_t hot_beyond = 0, cold_beyond = 0;  ///< how many rows these are
};

/// The number of useful swaps, at most `most`. A swap is useful if the host's row has twice the uses of the device's
/// row plus two: then rows with similar uses do not swap back and forth, and similar uses in the next period pay for
/// the swap, which moves two rows. `always`: whether they gain something or not.
SwapPlan plan_swaps(const UseCounts& on_device, const UseCounts& on_host, int64_t most, bool always = false);

/// Bytes of scratch for tables of up to `rows` rows.
size_t swap_scratch_bytes(Device, int64_t rows);
namespace cuda {
size_t swap_scratch_bytes(int64_t rows);
}

/// counts[u] = how many of rows first to last have u uses. Waits for the stream.
HCTR_OP(void count_uses(Context&, const uint8_t* uses, int64_t first, int64_t last, std::byte* scratch,
                        UseCounts& counts))
/// out = those of rows first to last whose uses are in [low, high], ascending, the first `most` of them. There must be
/// that many.
HCTR_OP(void select_by_uses(Context&, const uint8_t* uses, int64_t first, int64_t last, int low, int high, int64_t most,
                            std::byte* scratch, int32_t* out))
/// Swaps rows one[i] and other[i] of an array with `bytes` bytes per row. All rows are distinct.
HCTR_OP(void swap_rows(Context&, const int32_t* one, const int32_t* other, int64_t count, void* column, int64_t bytes))
/// places[numbers[rows[i]]] = rows[i]: the new positions of a direct index's rows.
HCTR_OP(void note_places(Context&, const int32_t* rows, int64_t count, const int32_t* numbers, int32_t* places))
/// rows[i] = places[rows[i]].
HCTR_OP(void find_places(Context&, const int32_t* places, int64_t count, int32_t* rows))
/// marks[rows[i]] = 1.
HCTR_OP(void mark_rows(Context&, const int32_t* rows, int64_t count, uint8_t* marks, uint8_t bits))
/// Halves the uses of rows 1 to `rows`.
HCTR_OP(void halve_uses(Context&, int64_t rows, uint8_t* uses))

}  // namespace hctr::ops
