// Counts the uses of rows, and swaps rows between device and host by use counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/device/buffer.h"
#include "engine/rows/row_arrays.h"
#include "engine/rows/row_figures.h"
#include "engine/rows/row_index.h"
#include "engine/tiers/row_changes.h"
#include "ops/embedding/row_swap.h"

namespace hctr {

/// The maximum number of swaps per call, for a table with addresses for `rows` rows. A swap reads and writes one row in
/// host memory. At 30 million such reads and writes per second, 2^17 swaps take 9 ms per array of rows, a few percent
/// of the time of the 128 steps between two calls. Once the frequently used rows are on the device, fewer rows are
/// swapped.
constexpr int64_t most_swaps(int64_t rows) { return std::min(int64_t{1} << 17, rows); }

/// Swaps frequently used rows in host memory with rarely used rows on the device.
class RowsInUse {
 public:
  /// Allocates memory for the use counts of `rows` rows, and for swaps. `direct`: whether arithmetic finds the rows. If
  /// so, swapped rows change their place but keep their row number; if not, they exchange row numbers. Errors:
  /// Error(device), which leaves the table unchanged.
  RowsInUse(RowArrays&, RowIndex&, RowChanges&, int64_t rows, bool direct);

  /// Bytes allocated in addition to the per-row columns.
  int64_t buffer_bytes() const {
    return static_cast<int64_t>(reads_.bytes() + pairs_.bytes() + scratch_.bytes() + places_.bytes());
  }
  /// Determines which rows are on the device. Call when the first row gets host memory, and when rows move to the host.
  void note_border();
  /// Whether uses are counted: true after the first call of note_border().
  bool counts() const { return rows_.first_on_host > 0; }
  /// Resets places() of direct keys, so that every row is at the place of its row number.
  void number_by_key();
  /// Counts the uses of a batch's rows, on the prepare stream.
  void count(const ops::RowGroups&, int64_t key_capacity);
  /// Swaps rows in every `every`-th call, which waits for queued work. Call before a batch. `always`: swap even if it
  /// brings no gain. `left`: sorted free row numbers, which are not swapped.
  void swap(int64_t every, bool always, std::span<const int32_t> left);
  /// Sets `moved`, `reads` and `reads_on_device`. Waits for the compute stream.
  void report(HostRows&) const;

 private:
  /// Selects the rows of the plan among rows 1 to `rows`, and swaps them.
  void swap_chosen(Context&, const ops::SwapPlan&, int64_t rows);
  /// Swaps each row one[i] with row other[i], and updates the places or row numbers of both.
  void swap_rows(Context&, const int32_t* one, const int32_t* other, int64_t count);

  RowArrays& arrays_;
  RowIndex& index_;
  RowChanges& changes_;
  bool direct_;
  ops::RowUses rows_;           // first_on_host is 0 until some row has host memory
  int32_t* numbers_ = nullptr;  // for direct keys: row number at each place, the inverse of places_
  int64_t most_;                // maximum swaps per call
  Buffer reads_, pairs_, scratch_, places_;
  int64_t batches_ = 0, calls_ = 0, moved_ = 0;  // batches_: number of swap() calls since the last swap
};

}  // namespace hctr
