// The rows of a table in memory: arrays with an element per row, the index that finds them, and how both grow.
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

/// The prepared batch for which rows are removed. Its row numbers are updated.
struct RowsOfBatch {
  int32_t* rows = nullptr;  // [count]
  int64_t count = 0;
  int32_t instead = 0;           // the row number in place of removed rows
  uint64_t* replaced = nullptr;  // on the device: incremented for each of those
};

/// Data with an element per row that is kept elsewhere, and follows rows that get other numbers.
class RowFollower {
 public:
  virtual ~RowFollower() = default;
  /// The moves of a removal, which there were `rows` rows before. On the stream of the context.
  virtual void follow(Context&, const ops::RowMoves&, int64_t rows) = 0;
};

/// Rows 1 to arrays().capacity() can be assigned; row 0 is "no row". Address ranges for all memory of the device are
/// reserved at construction, so that growing moves nothing and recorded work stays valid. Knows nothing of limits, of
/// memory of the host or of disks: others decide which rows get memory, come and leave.
class RowsInMemory {
 public:
  struct Sizes {
    int64_t most_rows = 0;      ///< that may be assigned
    int64_t addresses = 0;      ///< rows that addresses are reserved for
    int64_t batch_keys = 0;     ///< most keys of one batch
    int64_t batches_ahead = 0;  ///< batches that may be queued when memory for one more is reserved
    bool on_disk = false;       ///< rows may be on a disk
    bool removes = false;       ///< rows are removed, by a policy or for a disk
  };
  /// `keys`: those that rows are found for by arithmetic; empty: by the index. `budget` outlives this.
  RowsInMemory(Runtime&, RowMemory& budget, const TableSpec&, DirectKeys keys, const Sizes&);
  RowsInMemory(const RowsInMemory&) = delete;
  RowsInMemory& operator=(const RowsInMemory&) = delete;

  RowArrays& arrays() { return arrays_; }
  const RowArrays& arrays() const { return arrays_; }
  RowIndex& index() { return index_; }
  const RowIndex& index() const { return index_; }
  const DirectKeys& direct_keys() const { return keys_; }
  /// The index of a table that has every row from the start; none if rows are added with their keys, or may be on a
  /// disk.
  std::optional<ops::DirectIndex> direct() const {
    return keys_.empty() ? std::nullopt : std::optional(arrays_.data().identity.direct);
  }
  /// Numbers that the index counts and no row has now.
  FreeRows& free_places() { return free_; }
  const FreeRows& free_places() const { return free_; }
  RowBits& bits() { return bits_; }
  const RowBits& bits() const { return bits_; }

  struct Batches {
    int64_t keys;   ///< most of one batch: at most TableSpec::most_key_capacity
    int64_t ahead;  ///< batches that may be queued
    /// The most keys of all batches that may be queued, and of one more.
    int64_t ring_keys() const { return (ahead + 1) * keys; }
    /// Raises the maximum.
    void grow(int64_t most) { keys = std::max(keys, most); }
  };
  Batches& batches() { return batches_; }
  const Batches& batches() const { return batches_; }
  int64_t most_rows() const { return most_rows_; }

  /// The two ends of growth: metadata of `rows` rows get memory; then RowArrays::grow_numbers(); open() then lets them
  /// be assigned. Errors: Error(device).
  void grow_besides_numbers(int64_t rows);
  void open(int64_t rows);

  // The first rows, which have memory.
  /// All rows of direct keys exist, with initial values. Waits for queued work.
  void create_all();
  /// Row 1 belongs to no key, but to all that get no row of their own. `name`: of the table.
  void add_shared_row(const std::string& name);
  /// Assigns rows 1, 2, ... to these keys in their order, with initial values. There is no other row, and the index has
  /// entries for them. `slots` is empty if rows belong to keys alone. Waits for queued work.
  void assign(std::span<const int64_t> keys, std::span<const int32_t> slots);

  using Choose = std::function<void(Context&, const ops::RemovalMemory&, const ops::IndexState&)>;
  /// Waits for queued work, which may be no more than the preparation of `batch`, and removes the rows that `choose`
  /// marks. The remaining rows are renumbered 1 to n, and there are no free places. Returns the number of removed rows;
  /// rows that had left their places before do not count.
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
