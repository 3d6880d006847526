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

/// Writes the columns of rows in memory, and behind them of those on the disk, or in an order of their own. Rows in
/// memory are numbered without gaps, and nothing is queued. For one checkpoint.
class RowSaver {
 public:
  struct Rows {
    int64_t in_memory = 0;
    std::span<const DiskRows::Row> on_disk{};
    std::shared_ptr<DiskSnapshot> snapshot{};  ///< null, or `on_disk` are its rows, which may then be read later
  };
  /// All but the rows outlive it. `tier`: null without a disk.
  RowSaver(StateWriter& to, const RowArrays& arrays, const RowChanges& changes, const RowDiskTier* tier, Rows rows)
      : to_(to), arrays_(arrays), changes_(changes), tier_(tier), rows_(std::move(rows)) {}

  // A list of rows has those in memory by their number, those on the disk as -1 - their index in Rows::on_disk.
  /// All columns, whole. `order`: of all rows; empty: those in memory by their number, then those on the disk.
  void save_all(std::vector<int64_t> order) const;
  /// The rows that have changed since the base, or have other numbers than there, and those that it does not have.
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
  /// Copies the bytes of rows in memory, in the order of row numbers, from row 1 on.
  StateWriter::Copy memory_of(const RowColumn&) const;
  /// The bytes from `first` on of a column of a list of rows.
  void read(const RowColumn&, std::span<const int64_t> rows, int64_t first, std::span<std::byte> to) const;
  void copy(const RowColumn&, std::span<const int64_t> rows, std::byte* to) const;
  /// Whether so many rows, of which these are in memory, can be left for later in an order of their own.
  bool fits_later(int64_t rows_in_memory, int64_t rows) const;
  /// Leaves a list of rows of columns for later; empty: all of the snapshot.
  void leave_for_later(std::vector<int64_t> rows, const std::vector<LaterColumn>&) const;

  StateWriter& to_;
  const RowArrays& arrays_;
  const RowChanges& changes_;
  const RowDiskTier* tier_;
  Rows rows_;
};

}  // namespace hctr
