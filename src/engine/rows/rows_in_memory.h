// The rows of a table in memory: the arrays with one element per row, the index that finds rows, and the growth of
// arrays and index.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "engine/rows/free_rows.h"
#include "engine/rows/row_arrays.h"
#include "engine/rows/row_bits.h"
#include "engine/rows/row_index.h"
#include "engine/spec/table_spec.h"
#include "ops/embedding/row_removal.h"

namespace hctr {

/// A prepared batch whose row numbers must be updated when rows are removed.
struct RowsOfBatch {
  int32_t* rows = nullptr;  // [count]
  int64_t count = 0;
  int32_t instead = 0;           // row number to write in place of those of removed rows
  uint64_t* replaced = nullptr;  // device counter, incremented for each replaced row number
};

/// Per-row data that is stored elsewhere and must be moved when rows are renumbered.
class RowFollower {
 public:
  virtual ~RowFollower() = default;
  /// Applies the moves of a removal on the context's stream. `rows`: number of rows before the removal.
  virtual void follow(Context&, const ops::RowMoves&, int64_t rows) = 0;
};

/// Rows 1 to arrays().capacity() can be assigned; row 0 means "no row". The address ranges of all device memory are
/// reserved at construction. Growth moves no data, so recorded work stays valid. The callers handle row limits, host
/// memory and disks. The callers decide which rows get memory, and which rows are added or removed.
class RowsInMemory {
 public:
  struct Sizes {
    int64_t most_rows = 0;      ///< maximum rows that may be assigned
    int64_t addresses = 0;      ///< rows for which addresses are reserved
    int64_t batch_keys = 0;     ///< maximum keys of one batch
    int64_t batches_ahead = 0;  ///< batches that may be queued when the next batch reserves memory
    bool on_disk = false;       ///< whether rows may be on disk
    bool removes = false;       ///< whether a policy removes rows or a disk tier evicts them
  };
  /// `keys`: the direct keys, whose rows are found by arithmetic. If `keys` is empty, the index finds the rows.
  /// `budget` must outlive this object.
  RowsInMemory(Runtime&, RowMemory& budget, const TableSpec&, DirectKeys keys, const Sizes&);
  RowsInMemory(const RowsInMemory&) = delete;
  RowsInMemory& operator=(const RowsInMemory&) = delete;

  RowArrays& arrays() { return arrays_; }
  const RowArrays& arrays() const { return arrays_; }
  RowIndex& index() { return index_; }
  const RowIndex& index() const { return index_; }
  const DirectKeys& direct_keys() const { return keys_; }
  /// The arithmetic index of a table in which every row exists from the start. nullopt if batches add rows, or if rows
  /// may be on disk.
  std::optional<ops::DirectIndex> direct() const {
    return keys_.empty() ? std::nullopt : std::optional(arrays_.data().identity.direct);
  }
  /// Row numbers that the index counts but no row uses.
  FreeRows& free_places() { return free_; }
  const FreeRows& free_places() const { return free_; }
  RowBits& bits() { return bits_; }
  const RowBits& bits() const { return bits_; }

  struct Batches {
    int64_t keys;   ///< maximum keys of one batch, at most TableSpec::most_key_capacity
    int64_t ahead;  ///< batches that may be queued
    /// Maximum keys of all queued batches and one more batch.
    int64_t ring_keys() const { return (ahead + 1) * keys; }
    /// Raises the maximum keys of one batch to `most`.
    void grow(int64_t most) { keys = std::max(keys, most); }
  };
  Batches& batches() { return batches_; }
  const Batches& batches() const { return batches_; }
  int64_t most_rows() const { return most_rows_; }

  /// The three steps of growth. grow_besides_numbers() allocates the metadata of `rows` rows. RowArrays::grow_numbers()
  /// allocates vectors and optimizer states. open() permits the rows to be assigned. Errors: Error(device).
  void grow_besides_numbers(int64_t rows);
  void open(int64_t rows);

  // Functions that create the first rows. The memory of these rows must be allocated.

  /// Creates all rows of direct keys with initial values. Waits for queued work.
  void create_all();
  /// Creates row 1 as the shared row, which every key uses that has no row. `name`: the name of the table.
  void add_shared_row(const std::string& name);
  /// Assigns rows 1, 2, ... to these keys in order, with initial values. No other row may exist, and the index must
  /// have entries for the keys. `slots` is empty if rows do not depend on slots. Waits for queued work.
  void assign(std::span<const int64_t> keys, std::span<const int32_t> slots);

  using Choose = std::function<void(Context&, const ops::RemovalMemory&, const ops::IndexState&)>;
  /// Removes the rows that `choose` marks, and renumbers the remaining rows 1 to n without gaps. Waits for queued work.
  /// No work may be queued except the preparation of `batch`. Returns the number of removed rows. Rows that were
  /// evicted before this call do not count.
  int64_t remove(const RowsOfBatch& batch, const Choose& choose, RowFollower&);

 private:
  Runtime& runtime_;
  const DirectKeys keys_;
  Batches batches_;
  int64_t most_rows_;
  bool removes_;
  RowArrays arrays_;
  RowIndex index_;
  FreeRows free_;
  RowBits bits_;
  Buffer spans_;
};

}  // namespace hctr
