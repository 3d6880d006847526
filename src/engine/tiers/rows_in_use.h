// Counts the uses of rows, and swaps rows between a device and its host by use.
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

/// The maximum number of swaps at a time, for a table with addresses for this many rows. A swap reads and writes one
/// row of the host. At 30 million a second of each, these take 9 ms for each array of rows: a few per cent of the 128
/// steps between two calls, while rows still find their places.
constexpr int64_t most_swaps(int64_t rows) { return std::min(int64_t{1} << 17, rows); }

/// Swaps rows on the host that batches use often with rows on the device that they rarely use.
class RowsInUse {
 public:
  /// Allocates memory for the uses of `rows` rows, and for swaps. `direct`: rows are found by arithmetic, so that they
  /// have places in addition to numbers; otherwise swapped rows get other numbers. Errors: Error(device); then nothing
  /// has changed.
  RowsInUse(RowArrays&, RowIndex&, RowChanges&, int64_t rows, bool direct);

  /// Bytes in addition to arrays with an element per row.
  int64_t buffer_bytes() const {
    return static_cast<int64_t>(reads_.bytes() + pairs_.bytes() + scratch_.bytes() + places_.bytes());
  }
  /// Notes which rows are on the device, once some row has host memory.
  void note_border();
  /// Whether that has been noted, so that uses are counted.
  bool counts() const { return rows_.first_on_host > 0; }
  /// Moves the rows of direct keys to the places of their numbers.
  void number_by_key();
  /// Counts the uses of the rows of a batch, on the prepare stream.
  void count(const ops::RowGroups&, int64_t key_capacity);
  /// Before a batch: swaps rows every `every` calls, which waits for queued work. `always`: even if they gain nothing.
  /// `left`: places of evicted rows, ascending; they are not swapped.
  void swap(int64_t every, bool always, std::span<const int32_t> left);
  /// Sets the figures that it has. Waits for the compute stream.
  void report(HostRows&) const;

 private:
  /// Chooses the rows of the plan among rows 1 to `rows`, and swaps them.
  void swap_chosen(Context&, const ops::SwapPlan&, int64_t rows);
  /// Swaps rows one[i] and other[i], and notes their places.
  void swap_rows(Context&, const int32_t* one, const int32_t* other, int64_t count);

  RowArrays& arrays_;
  RowIndex& index_;
  RowChanges& changes_;
  bool direct_;
  ops::RowUses rows_;           // first_on_host is 0 until some row has host memory
  int32_t* numbers_ = nullptr;  // of direct keys, with places_
  int64_t most_;                // swaps at a time
  Buffer reads_, pairs_, scratch_, places_;
  int64_t batches_ = 0, calls_ = 0, moved_ = 0;  // batches: since the last swap
};

}  // namespace hctr
