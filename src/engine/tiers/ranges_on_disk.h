// A table with direct keys whose rows do not all fit in memory. All rows exist from the start, in memory or on disk,
// and a hash index finds those in memory. Checkpoints store rows in key order, as for a table without a disk.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/disk/row_disk_tier.h"
#include "engine/rows/rows_in_memory.h"
#include "engine/spec/direct_keys.h"

namespace hctr {

class RangesOnDisk {
 public:
  /// All arguments except the keys must outlive this object.
  RangesOnDisk(RowMemory& budget, RowsInMemory&, RowDiskTier&, DirectKeys);

  int64_t rows() const { return keys_.rows(); }
  /// The key and slot of row number `row` in a table that has all rows in memory.
  ops::RowOwner owner(int64_t row) const { return keys_.index().owner(row); }
  /// Creates all rows with initial values, and writes to disk the rows that do not fit in memory. Errors: Error(io) if
  /// these rows do not fit on the disk.
  void create();
  /// Assigns keys to rows 1 to `count`: those of rows `first`, `first` + 1 and so on of a table that has all rows in
  /// memory.
  void set_owners(int64_t first, int64_t count);
  /// Lists the `rows` rows in memory and the rows on disk, in the order in which a table without a disk stores them.
  /// RowSaver defines the form of the list.
  std::vector<int64_t> order(int64_t rows, std::span<const DiskRows::Row> on_disk) const;
  /// Errors: Error(data) for the first key outside the ranges.
  void check(std::span<const ops::MissingKey> missing, NewKeys) const;

 private:
  RowMemory& budget_;
  RowArrays& arrays_;
  RowIndex& index_;
  RowDiskTier& disk_;
  Runtime& runtime_;
  const DirectKeys keys_;
};

}  // namespace hctr
