// Tables with direct keys whose rows memory has no room for: all exist from the start, in memory or on the disk, and an
// index finds them. A checkpoint has them in the order of their keys, as that of a table in memory.
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
  /// All but the keys outlive it.
  RangesOnDisk(RowMemory& budget, RowsInMemory&, RowDiskTier&, DirectKeys);

  int64_t rows() const { return keys_.rows(); }
  /// The key and slot of a row, as numbered where all rows fit.
  ops::RowOwner owner(int64_t row) const { return keys_.index().owner(row); }
  /// Gives all rows their initial values: those that memory has no room for go to the disk. Errors: Error(io) when they
  /// do not fit there either.
  void create();
  /// Rows 1 to `count` get the keys of the rows that are `first` and so on where all fit.
  void set_owners(int64_t first, int64_t count);
  /// `rows` rows in memory and those on the disk, in the order in which a table in memory has them: see RowSaver.
  std::vector<int64_t> order(int64_t rows, std::span<const DiskRows::Row> on_disk) const;
  /// Errors: Error(data) for the first key that has no row.
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
