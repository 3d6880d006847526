// Writes the rows of a store to a checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/disk/disk_snapshot.h"
#include "engine/disk/row_disk_tier.h"
#include "engine/rows/row_arrays.h"
#include "engine/tiers/row_changes.h"
#include "formats/checkpoint/state_writer.h"

namespace hctr {

/// Writes the columns of all rows in a given order. Without a given order, the rows in memory come before the rows on
/// disk. Rows in memory must have contiguous row numbers, and no work may be queued. One RowSaver writes one
/// checkpoint.
class RowSaver {
 public:
  struct Rows {
    int64_t in_memory = 0;
    std::span<const DiskRows::Row> on_disk{};
    /// The snapshot of `on_disk`, from which a thread can read the rows later. Null: read the rows now.
    std::shared_ptr<DiskSnapshot> snapshot{};
  };
  /// All arguments except `rows` must outlive this object. `tier`: null without a disk tier.
  RowSaver(StateWriter& to, const RowArrays& arrays, const RowChanges& changes, const RowDiskTier* tier, Rows rows)
      : to_(to), arrays_(arrays), changes_(changes), tier_(tier), rows_(std::move(rows)) {}

  // A list of rows contains the row number of each row in memory, and -1 - (index in Rows::on_disk) for each row on
  // disk.

  /// Saves all columns completely. `order`: a list of all rows. If `order` is empty, the rows in memory come first, by
  /// row number, then the rows on disk.
  void save_all(std::vector<int64_t> order) const;
  /// Saves the increment. It consists of the rows that have changed since the base, have another number than in the
  /// base, or are not in the base.
  void save_changes() const { changes_.go_by_place() ? save_changes_by_place() : save_changes_by_number(); }

 private:
  struct LaterColumn {
    const RowColumn* column;
    LaterRows::Part part;
  };
  int64_t rows() const { return rows_.in_memory + static_cast<int64_t>(rows_.on_disk.size()); }
  void save_changes_by_number() const;
  void save_changes_by_place() const;
  struct ChangedPlaces;
  ChangedPlaces changed_places() const;
  void save_column(const RowColumn&) const;
  /// Returns a function that copies bytes of rows in memory, ordered by row number, from row 1.
  StateWriter::Copy memory_of(const RowColumn&) const;
  /// Reads bytes [first, first + to.size()) of a column's array over the listed rows.
  void read(const RowColumn&, std::span<const int64_t> rows, int64_t first, std::span<std::byte> to) const;
  void copy(const RowColumn&, std::span<const int64_t> rows, std::byte* to) const;
  /// Whether memory suffices to write `rows` rows later in a given order. `rows_in_memory` of these rows are in memory
  /// and would be copied now.
  bool fits_later(int64_t rows_in_memory, int64_t rows) const;
  /// Schedules the columns of the listed rows to be written later. An empty list means all rows of the snapshot.
  void leave_for_later(std::vector<int64_t> rows, const std::vector<LaterColumn>&) const;

  StateWriter& to_;
  const RowArrays& arrays_;
  const RowChanges& changes_;
  const RowDiskTier* tier_;
  Rows rows_;
};

}  // namespace hctr
