// Counts the memory and disk space of a row store in the budgets, and computes how many rows fit.
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

/// Arithmetic only: it moves no row and allocates nothing. Numbers of rows are counted in the budget when they get
/// memory. All else that a store takes (keys, index, statistics, marks, buffers for swaps, blocks in transit) is
/// counted here, for all rows with memory. On a CPU without a device budget there is one memory: all of that counts as
/// host memory.
class RowAccount {
 public:
  struct Rules {
    bool counts = true;         ///< it takes memory in addition to numbers; false: no rows
    bool direct = false;        ///< rows are found by arithmetic; otherwise by an index
    bool removes_rows = false;  ///< rows are removed, using the memory of the index
    bool rows_move = false;     ///< rows are swapped between device and host by use
    int64_t spare_keys = 0;     ///< index entries in addition to those of rows
    int64_t lookup_bytes = 0;   ///< bytes on the host
  };
  /// Everything but the rules must outlive it.
  RowAccount(RowMemory& budget, const RowArrays&, const RowIndex&, const Rules&);
  ~RowAccount();
  RowAccount(const RowAccount&) = delete;
  RowAccount& operator=(const RowAccount&) = delete;
  /// From now on rows may be on this disk, moved in these blocks.
  void set_disk(const DiskRows& disk, const RecordBlocks& records) {
    disk_ = &disk;
    records_ = &records;
  }
  /// From now on uses are counted, with buffers of this many bytes.
  void set_uses(int64_t bytes) { uses_ = bytes; }

  /// Updates the counts in the budget for rows with memory.
  void count();
  DeviceBytes device_bytes() const { return {arrays_.number_bytes_on_device(), counted_.on_device}; }

  // `moving`: uses are counted, because some of these rows are in host memory.
  /// The maximum number of rows, of `rows`, whose numbers can be on the device.
  int64_t rows_on_device(int64_t rows, bool moving) const;
  int64_t rows_on_device(int64_t rows) const { return rows_on_device(rows, uses_.has_value()); }
  /// The maximum from `least` to `most` of rows whose numbers all fit on the device; `least` itself may not fit.
  int64_t most_on_device_alone(int64_t least, int64_t most) const;
  /// Device bytes missing for this many rows; 0 or less: none.
  int64_t missing_on_device(int64_t rows, bool moving) const;
  /// Throws the Error(device) for that, with the minimum budget, if moving rows to the host can free this many bytes.
  [[noreturn]] void throw_missing_on_device(int64_t rows, int64_t missing, int64_t movable) const;
  /// Errors: Error(device) with the minimum budget if the host cannot hold the numbers of the rows after the first
  /// `on_device`, rows that move there, and everything else.
  void check_host_room(int64_t rows, int64_t on_device, bool moving) const;
  /// Approximate host bytes for each row after these.
  int64_t host_bytes_of_row(int64_t rows, bool moving) const;
  /// The maximum number of rows in memory, at most `most` but at least the current number. With a disk.
  int64_t rows_in_budget(int64_t most) const;

  /// The maximum bytes of numbers that can move from the device to the host.
  int64_t most_to_host() const;
  /// The rows whose numbers stay on the device so that, after bytes_to_start() is taken, `wanted` more bytes are free
  /// there, or as many as possible; none: nothing can move. A negative `wanted` allows to use up this many free bytes.
  std::optional<int64_t> rows_to_stay(int64_t wanted) const;
  /// Whether uses must be counted once rows move to the host, and the device bytes for that.
  bool starts_to_move() const { return rules_.rows_move && !uses_; }
  int64_t bytes_to_start(int64_t rows) const { return starts_to_move() ? bytes_of_uses(rows) : 0; }

  /// Host bytes reserved for the map of rows on disk: its maximum size, or a quarter of the budget.
  int64_t kept_for_map() const;

 private:
  struct Besides {
    int64_t on_device = 0, on_host = 0;
  };
  Besides besides_numbers(int64_t rows, bool moving) const;
  /// Device memory in addition to numbers that is allocated now.
  int64_t besides_with_memory() const;
  /// Bytes left for numbers on the device, after this. Negative: this many are missing.
  int64_t room_for_numbers(const Besides&) const;
  /// Additional bytes of numbers on the device if those of the first rows are there.
  int64_t more_numbers(int64_t rows) const;
  /// Rounds up to the allocation granularity of the device.
  int64_t whole_granules(int64_t bytes) const;
  int64_t bytes_of_uses(int64_t rows) const;
  int64_t most_map_bytes() const;

  RowMemory& budget_;
  const RowArrays& arrays_;
  const RowIndex& index_;
  const Device device_;
  const Rules rules_;
  const bool one_memory_;  // device and host share a memory: on a CPU, unless "gpu" is stated
  const DiskRows* disk_ = nullptr;
  const RecordBlocks* records_ = nullptr;
  std::optional<int64_t> uses_;
  Besides counted_;
};

}  // namespace hctr
