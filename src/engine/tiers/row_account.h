// What a row store takes of the budgets of a device, its host and a disk, and how many rows they have room for.
#pragma once

#include <cstdint>
#include <optional>

#include "core/device/row_budget.h"
#include "engine/disk/disk_rows.h"
#include "engine/disk/record_blocks.h"
#include "engine/rows/row_arrays.h"
#include "engine/rows/row_figures.h"
#include "engine/rows/row_index.h"

namespace hctr {

/// Arithmetic alone: it moves no row and gets no memory. Numbers of rows count themselves in the budget, as they get
/// memory. What a store takes besides them (keys, index, statistics, marks, what rows move with, and blocks on their
/// way) is counted here, for all rows that have memory. On a CPU without a budget for its device, where there is one
/// memory, all of that is the host's.
class RowAccount {
 public:
  struct Rules {
    bool counts = true;         ///< what it takes besides numbers; false: rows have none
    bool direct = false;        ///< rows are found by arithmetic; else by an index
    bool removes_rows = false;  ///< in the memory of the index
    bool rows_move = false;     ///< between device and host, by how often they are used
    int64_t spare_keys = 0;     ///< that the index has entries for, besides those of rows
    int64_t lookup_bytes = 0;   ///< on the host
  };
  /// All but the rules outlive it.
  RowAccount(RowMemory& budget, const RowArrays&, const RowIndex&, const Rules&);
  ~RowAccount();
  RowAccount(const RowAccount&) = delete;
  RowAccount& operator=(const RowAccount&) = delete;
  /// From now on rows may be on this disk, and go there in these blocks.
  void set_disk(const DiskRows& disk, const RecordBlocks& records) {
    disk_ = &disk;
    records_ = &records;
  }
  /// From now on uses are counted, and buffers of so many bytes belong to them.
  void set_uses(int64_t bytes) { uses_ = bytes; }

  /// Counts in the budget what rows with memory take now.
  void count();
  DeviceBytes device_bytes() const { return {arrays_.number_bytes_on_device(), counted_.on_device}; }

  // `moving`: uses are counted, as some of these rows are in host memory.
  /// The most rows, of `rows`, whose numbers can be on the device beyond those that are.
  int64_t rows_on_device(int64_t rows, bool moving) const;
  int64_t rows_on_device(int64_t rows) const { return rows_on_device(rows, uses_.has_value()); }
  /// The most rows from `least` to `most` whose numbers are all on the device; `least` itself may not be.
  int64_t most_on_device_alone(int64_t least, int64_t most) const;
  /// Bytes that the device lacks for what so many rows need there; 0 or less: none.
  int64_t missing_on_device(int64_t rows, bool moving) const;
  /// Throws the Error(device) that says so, and names the least budget, if rows can leave so many bytes for the host.
  [[noreturn]] void throw_missing_on_device(int64_t rows, int64_t missing, int64_t movable) const;
  /// Errors: Error(device) when the host may not hold the numbers of the rows beyond the first `on_device`, those that
  /// move there and what else is there, naming the least budget.
  void check_host_room(int64_t rows, int64_t on_device, bool moving) const;
  /// What each row beyond these takes of the host, about.
  int64_t host_bytes_of_row(int64_t rows, bool moving) const;
  /// Rows that there can be in memory, those that there are included, and no more than `most` otherwise. With a disk.
  int64_t rows_in_budget(int64_t most) const;

  /// The most bytes of numbers that can move from the device to the host.
  int64_t most_to_host() const;
  /// The rows whose numbers stay on the device so that `wanted` bytes more are free there once bytes_to_start() has
  /// been taken, or as many as can be; none: nothing can leave. `wanted` is below 0 where that many free bytes may be
  /// used up.
  std::optional<int64_t> rows_to_stay(int64_t wanted) const;
  /// Whether uses of rows have to be counted once some move to the host, and the bytes on the device that this takes.
  bool starts_to_move() const { return rules_.rows_move && !uses_; }
  int64_t bytes_to_start(int64_t rows) const { return starts_to_move() ? bytes_of_uses(rows) : 0; }

  /// Bytes on the host that are kept for the map of rows on the disk: as much as it can need, or a quarter of the
  /// budget.
  int64_t kept_for_map() const;

 private:
  struct Besides {
    int64_t on_device = 0, on_host = 0;
  };
  Besides besides_numbers(int64_t rows, bool moving) const;
  /// What belongs to it on the device and has memory by now.
  int64_t besides_with_memory() const;
  /// Bytes that are left on the device for numbers, once it has this too. Below 0: so many are missing.
  int64_t room_for_numbers(const Besides&) const;
  /// Bytes of numbers that the device gets more if those of the first rows are there.
  int64_t more_numbers(int64_t rows) const;
  /// Bytes as the device has memory for them.
  int64_t whole_granules(int64_t bytes) const;
  int64_t bytes_of_uses(int64_t rows) const;
  int64_t most_map_bytes() const;

  RowMemory& budget_;
  const RowArrays& arrays_;
  const RowIndex& index_;
  const Device device_;
  const Rules rules_;
  const bool one_memory_;  // of the device and its host: that of a CPU, unless "gpu" is stated
  const DiskRows* disk_ = nullptr;
  const RecordBlocks* records_ = nullptr;
  std::optional<int64_t> uses_;
  Besides counted_;
};

}  // namespace hctr
