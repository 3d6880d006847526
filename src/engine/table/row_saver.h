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

/// Writes the columns of rows in memory, then those of rows on disk, or all in a given order. Rows in memory must have
/// contiguous numbers, and nothing may be queued. For one checkpoint.
class RowSaver {
 public:
  struct Rows {
    int64_t in_memory = 0;
    std::span<const DiskRows::Row> on_disk{};
    /// null, or the snapshot of `on_disk`, so that its rows can be read later
    std::shared_ptr<DiskSnapshot> snapshot{};
  };
  /// Everything but the rows must outlive it. `tier`: null without a disk.
  RowSaver(StateWriter& to, const RowArrays& arrays, const RowChanges& changes, const RowDiskTier* tier, Rows rows)
      : to_(to), arrays_(arrays), changes_(changes), tier_(tier), rows_(std::move(rows)) {}

  // In a list of rows, a row in memory is its number; a row on disk is -1 - its index in Rows::on_disk.
  /// Saves all columns completely. `order`: of all rows; empty: rows in memory by number, then those on disk.
  void save_all(std::vector<int64_t> order) const;
  /// Saves the rows that have changed since the base, that have other numbers than in it, or that it lacks.
  void save_changes() const { changes_.go_by_place() ? save_changes_by_place() : save_changes_by_number(); }

 private:
  struct LaterColumn {
    const RowColumn* column;
    LaterRows::Part part;
  };
  int64_t rows() const { return rows_.in_memory + static_cast<int64_t>(rows_.on_disk.size()); }
  void save_changes_by_number() const;
  void save_changes_by_place() const;
  void save_column(const RowColumn&) const;
  /// Copies the bytes of rows in memory in the order of row numbers, starting with row 1.
  StateWriter::Copy memory_of(const RowColumn&) const;
  /// Reads the bytes from `first` on of a column of listed rows.
  void read(const RowColumn&, std::span<const int64_t> rows, int64_t first, std::span<std::byte> to) const;
  void copy(const RowColumn&, std::span<const int64_t> rows, std::byte* to) const;
  /// Whether memory suffices to write this many rows later in a given order; `rows_in_memory` of them are in memory.
  bool fits_later(int64_t rows_in_memory, int64_t rows) const;
  /// Writes the columns of listed rows later; empty: all rows of the snapshot.
  void leave_for_later(std::vector<int64_t> rows, const std::vector<LaterColumn>&) const;

  StateWriter& to_;
  const RowArrays& arrays_;
  const RowChanges& changes_;
  const RowDiskTier* tier_;
  Rows rows_;
};

}  // namespace hctr
