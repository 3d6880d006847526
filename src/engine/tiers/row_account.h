// Counts the memory and disk space of a row store in its budget, and computes how many rows fit.
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

/// Only computes: moves no row and allocates nothing. Vectors and optimizer states ("numbers") are charged to the
/// budget when they are allocated. This object charges all other memory of a store (keys, index, statistics, marks,
/// swap buffers, in-transit blocks), for all rows with allocated memory. On a CPU without a device budget, device and
/// host share one memory, and all of it is charged as host memory.
class RowAccount {
 public:
  struct Rules {
    bool counts = true;         ///< whether the budget counts the store's memory; false if rows have no elements
    bool direct = false;        ///< arithmetic instead of an index finds the rows
    bool removes_rows = false;  ///< whether rows are removed; a removal uses the index memory as scratch
    bool rows_move = false;     ///< rows are swapped between device and host by use counts
    int64_t spare_keys = 0;     ///< for how many keys, in addition to the rows, the index has entries
    int64_t lookup_bytes = 0;   ///< host bytes that a lookup needs
  };
  /// All arguments except the rules must outlive this object.
  RowAccount(RowMemory& budget, const RowArrays&, const RowIndex&, const Rules&);
  ~RowAccount();
  RowAccount(const RowAccount&) = delete;
  RowAccount& operator=(const RowAccount&) = delete;
  /// Enables rows on `disk`, which are moved in blocks of `records`.
  void set_disk(const DiskRows& disk, const RecordBlocks& records) {
    disk_ = &disk;
    records_ = &records;
  }
  /// Declares that uses are counted from now on, with buffers of `bytes` bytes.
  void set_uses(int64_t bytes) { uses_ = bytes; }

  /// Updates the budget's byte counts for the rows with allocated memory.
  void count();
  DeviceBytes device_bytes() const { return {arrays_.number_bytes_on_device(), counted_.on_device}; }

  // `moving`: whether uses are counted, because some rows are in host memory.

  /// Returns how many of the first `rows` rows can have their vectors and states on the device.
  int64_t rows_on_device(int64_t rows, bool moving) const;
  int64_t rows_on_device(int64_t rows) const { return rows_on_device(rows, uses_.has_value()); }
  /// The largest number of rows from `least` to `most` whose vectors and states all fit on the device. If even `least`
  /// rows do not fit, returns `least`.
  int64_t most_on_device_alone(int64_t least, int64_t most) const;
  /// Device bytes that are missing for `rows` rows. If the result is 0 or negative, no bytes are missing.
  int64_t missing_on_device(int64_t rows, bool moving) const;
  /// Throws Error(device) with the required budget: `missing` device bytes are missing, and moving rows to the host can
  /// free `movable` bytes.
  [[noreturn]] void throw_missing_on_device(int64_t rows, int64_t missing, int64_t movable) const;
  /// Checks that host memory suffices for the vectors and states of the rows after the first `on_device`, for rows that
  /// move to the host, and for all other host data. Errors: Error(device) with the required budget.
  void check_host_room(int64_t rows, int64_t on_device, bool moving) const;
  /// Approximate host bytes per additional row after `rows` rows.
  int64_t host_bytes_of_row(int64_t rows, bool moving) const;
  /// The maximum number of rows in memory with a disk tier: at least the current capacity, and at most `most`.
  int64_t rows_in_budget(int64_t most) const;

  /// Maximum bytes of vectors and states that can move from the device to the host.
  int64_t most_to_host() const;
  /// Returns how many rows must stay on the device when rows move to the host. The move frees `wanted` bytes in
  /// addition to bytes_to_start(). If that is not possible, the move frees as many bytes as possible. If `wanted` is
  /// negative, bytes_to_start() may use up that many bytes which are free already. nullopt: nothing can move.
  std::optional<int64_t> rows_to_stay(int64_t wanted) const;
  /// starts_to_move(): whether counting of uses has yet to start when rows move to the host. bytes_to_start(): the
  /// device bytes for the use counts.
  bool starts_to_move() const { return rules_.rows_move && !uses_; }
  int64_t bytes_to_start(int64_t rows) const { return starts_to_move() ? bytes_of_uses(rows) : 0; }

  /// Host bytes reserved for the map of rows on disk: the map's maximum size, but at most a quarter of the host budget.
  int64_t kept_for_map() const;

 private:
  struct Besides {
    int64_t on_device = 0, on_host = 0;
  };
  Besides besides_numbers(int64_t rows, bool moving) const;
  /// Device bytes allocated so far, without vectors and states.
  int64_t besides_with_memory() const;
  /// Device bytes left for vectors and states after `Besides` is allocated. A negative result is the number of missing
  /// bytes.
  int64_t room_for_numbers(const Besides&) const;
  /// Additional device bytes needed to have the vectors and states of the first `rows` rows on the device.
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
  const bool one_memory_;  // whether device and host share one memory: on a CPU without a device budget ("gpu")
  const DiskRows* disk_ = nullptr;
  const RecordBlocks* records_ = nullptr;
  std::optional<int64_t> uses_;
  Besides counted_;
};

}  // namespace hctr
