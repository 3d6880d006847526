// Tracks which rows of a store have changed since the last full checkpoint, and since the last model.
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

/// Each batch marks in RowArrays::marks() the rows that it may change. The last full checkpoint is the base of later
/// increments. Without a disk tier, a row of the base is identified by its row number, and a row that gets another
/// number is treated as changed. With a disk tier row numbers change often, so each row stores its place in the base
/// instead. `DiskRows` arguments: the rows on disk; null without a disk tier.
class RowChanges {
 public:
  /// The name of the list of changed rows in a checkpoint.
  static constexpr const char* kList = "changed_rows";
  /// `arrays` must outlive this object.
  explicit RowChanges(RowArrays& arrays) : arrays_(arrays) {}

  bool are_marked() const { return arrays_.marks() != nullptr; }
  bool go_by_place() const { return arrays_.base_places() != nullptr; }

  /// The base of increments. nullopt: the next checkpoint must be full.
  const std::optional<BaseCheckpoint>& base() const { return base_; }
  /// Call when rows have changed by anything but batches. All rows are then treated as changed: since the base until
  /// the next full checkpoint, and since the last model until the next model.
  void forget();
  /// Makes the current rows the base.
  void set_base(const BaseCheckpoint&, DiskRows*);
  /// Sets the base for rows that are identified by place. The base consists of rows 1 to `rows` in memory, followed by
  /// the rows on disk. `changed`: sorted indices, from 0, of the base rows that have changed. Errors: Error(data) for
  /// rows that do not exist.
  void set_base_places(int64_t rows, std::span<DiskRows::Row> on_disk, std::span<const int32_t> changed, DiskRows&);
  /// Call after rows 1 to `rows` and the rows on disk are loaded. The base of the loaded checkpoint becomes the base of
  /// later increments. Errors: those of StateReader; Error(data) for rows that the base does not have.
  void load(const StateReader&, int64_t rows, DiskRows*);
  /// The row numbers of changed rows of the base, sorted. Call only if the base identifies rows by number.
  std::vector<int32_t> since_base() const { return marked_rows(base_->rows, ops::kChangedSinceCheckpoint); }

  /// Starts to track changes since the last model.
  void start_delta(DiskRows*);
  bool known_since_model() const { return are_marked() && delta_known_; }
  /// The rows from 1 to `last` that have changed since the last model, sorted.
  std::vector<int32_t> since_model(int64_t last) const { return marked_rows(last, ops::kChangedSinceModel); }

  /// Applies the moves of a removal. `rows`: number of rows before the removal.
  void follow(Context&, const ops::RowMoves&, int64_t rows);
  /// Call when rows have been swapped, because a swap gives some row numbers to other keys.
  void note_other_keys() {
    if (base_) base_->keys_moved = true;
  }
  /// Sets `bits` in the marks of rows. Shapes: rows [count] on the device.
  void mark(Context&, const int32_t* rows, int64_t count, uint8_t bits) const;

 private:
  /// The row numbers from 1 to `last` whose marks contain `bit`.
  std::vector<int32_t> marked_rows(int64_t last, uint8_t bit) const;
  /// Clears `bit` in the marks of all rows.
  void clear(uint8_t bit, DiskRows*);
  void mark_base_rows(std::span<const int32_t> indices);

  RowArrays& arrays_;
  std::optional<BaseCheckpoint> base_;
  bool delta_known_ = false;  // whether marks show the changes since the last model
};

}  // namespace hctr
