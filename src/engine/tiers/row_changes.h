// Tracks the rows of a store that have changed since the last full checkpoint, and since the last model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/disk/disk_rows.h"
#include "engine/rows/row_arrays.h"
#include "engine/rows/row_figures.h"
#include "formats/checkpoint/state_reader.h"
#include "ops/embedding/row_removal.h"

namespace hctr {

/// Batches mark the rows that they may change, in RowArrays::marks(). The last full checkpoint is the base of later
/// increments. Its rows are identified by number, and a row that gets another number counts as changed. If rows may be
/// on disk, numbers change often: each row then stores its place in the base. Calls take the rows on disk; null: the
/// store has no disk.
class RowChanges {
 public:
  /// The name of the list of changed rows in a checkpoint.
  static constexpr const char* kList = "changed_rows";
  /// `arrays` must outlive it.
  explicit RowChanges(RowArrays& arrays) : arrays_(arrays) {}

  bool are_marked() const { return arrays_.marks() != nullptr; }
  bool go_by_place() const { return arrays_.base_places() != nullptr; }

  /// None: the next checkpoint must be full. Otherwise changes are tracked.
  const std::optional<BaseCheckpoint>& base() const { return base_; }
  /// Rows have changed other than by batches: all count as changed until the next full checkpoint, and until the next
  /// model.
  void forget();
  /// The current rows are the base.
  void set_base(const BaseCheckpoint&, DiskRows*);
  /// For rows identified by place: rows in memory, 1 to `rows`, then those on disk, are the rows of the base;
  /// `changed`: indices of base rows that differ, from 0, ascending. Errors: Error(data) for rows that do not exist.
  void set_base_places(int64_t rows, std::span<DiskRows::Row> on_disk, std::span<const int32_t> changed, DiskRows&);
  /// After rows 1 to `rows` and those on disk are loaded: later increments build on the same base as this one. Errors:
  /// those of StateReader; Error(data) for rows that the base does not have.
  void load(const StateReader&, int64_t rows, DiskRows*);
  /// The marked rows of the base, ascending. For rows identified by number.
  std::vector<int32_t> since_base() const { return marked_rows(base_->rows, ops::kChangedSinceCheckpoint); }

  /// Starts to count changes as changes since the last model.
  void start_delta(DiskRows*);
  bool known_since_model() const { return are_marked() && delta_known_; }
  /// The rows from 1 to `last` that have changed since the last model, ascending.
  std::vector<int32_t> since_model(int64_t last) const { return marked_rows(last, ops::kChangedSinceModel); }

  /// Of `rows` rows some have been removed and others have moved.
  void follow(Context&, const ops::RowMoves&, int64_t rows);
  /// Rows have been swapped, so that numbers belong to other keys now.
  void note_other_keys() {
    if (base_) base_->keys_moved = true;
  }
  /// Marks rows. Shapes: rows [count] on the device.
  void mark(Context&, const int32_t* rows, int64_t count, uint8_t bits) const;

 private:
  /// The numbers of rows 1 to `last` whose marks have the bit.
  std::vector<int32_t> marked_rows(int64_t last, uint8_t bit) const;
  /// Clears the bit in the marks of all rows.
  void clear(uint8_t bit, DiskRows*);
  void mark_base_rows(std::span<const int32_t> indices);

  RowArrays& arrays_;
  std::optional<BaseCheckpoint> base_;
  bool delta_known_ = false;  // marks show the changes since the last model
};

}  // namespace hctr
