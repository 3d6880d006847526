// Which rows of a store have changed since the last whole checkpoint, and since the last model.
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

/// Batches mark the rows that they may change, in RowArrays::marks(). The last whole checkpoint is the base of the
/// increments that follow it. Its rows go by their numbers, and a row that gets another number counts as changed;
/// unless rows may be on a disk, where numbers change all the time: then each row has its place in the base with it.
/// Where the store has a disk, its rows are given to the calls that concern them; else null.
class RowChanges {
 public:
  /// The list of a checkpoint that has the indices of changed rows.
  static constexpr const char* kList = "changed_rows";
  /// `arrays` outlives it.
  explicit RowChanges(RowArrays& arrays) : arrays_(arrays) {}

  bool are_marked() const { return arrays_.marks() != nullptr; }
  bool go_by_place() const { return arrays_.base_places() != nullptr; }

  /// None: the next checkpoint must be whole. With it, changes are known.
  const std::optional<BaseCheckpoint>& base() const { return base_; }
  /// Rows have changed otherwise than by batches: until the next whole checkpoint, and the next model, all may have.
  void forget();
  /// The rows as they are now are the base.
  void set_base(const BaseCheckpoint&, DiskRows*);
  /// Where rows go by their place: the rows in memory, 1 to `rows`, and behind them those on the disk are those of the
  /// base; `changed`: those of its rows, counted from 0 and ascending, that differ there. Errors: Error(data) for rows
  /// that it does not have.
  void set_base_places(int64_t rows, std::span<DiskRows::Row> on_disk, std::span<const int32_t> changed, DiskRows&);
  /// Once rows 1 to `rows`, and those on the disk, are loaded: later increments leave to a whole checkpoint what this
  /// one leaves to it. Errors: those of StateReader; Error(data) for rows that the base does not have.
  void load(const StateReader&, int64_t rows, DiskRows*);
  /// The rows of the base that are marked, ascending. For rows that go by their number.
  std::vector<int32_t> since_base() const { return marked_rows(base_->rows, ops::kChangedSinceCheckpoint); }

  /// From here on changes count as changes since the last model.
  void start_delta(DiskRows*);
  bool known_since_model() const { return are_marked() && delta_known_; }
  /// Of rows 1 to `last`, those that have changed since the last model, ascending.
  std::vector<int32_t> since_model(int64_t last) const { return marked_rows(last, ops::kChangedSinceModel); }

  /// Of `rows` rows some have been removed and others have moved.
  void follow(Context&, const ops::RowMoves&, int64_t rows);
  /// Rows have changed places, so that numbers belong to other keys now.
  void note_other_keys() {
    if (base_) base_->keys_moved = true;
  }
  /// Marks rows. Shapes: rows [count] on the device.
  void mark(Context&, const int32_t* rows, int64_t count, uint8_t bits) const;

 private:
  /// Rows 1 to `last` whose marks have the bit, by the number of the row.
  std::vector<int32_t> marked_rows(int64_t last, uint8_t bit) const;
  /// Clears the bit in the marks of all rows.
  void clear(uint8_t bit, DiskRows*);
  void mark_base_rows(std::span<const int32_t> indices);

  RowArrays& arrays_;
  std::optional<BaseCheckpoint> base_;
  bool delta_known_ = false;  // marks tell what has changed since the last model
};

}  // namespace hctr
