// How many rows of a table are where.
#pragma once

#include <cstdint>

namespace hctr {

/// What of a table is on a disk, and what has been moved since the run began.
struct DiskUse {
  int64_t rows = 0, bytes = 0;      ///< there now
  int64_t written = 0, read = 0;    ///< rows, also for files
  int64_t needed = 0, brought = 0;  ///< different rows of training batches, since some are there; those that came
  int64_t ahead = 0;                ///< rows that look_ahead() has found on the disk
  int64_t read_ahead = 0;           ///< of those read, rows that look_ahead() had read
  int64_t moved = 0;                ///< rows that were written again, for long writes
  double seconds = 0;               ///< that steps, evaluations and files have waited
  bool unwritten = false;           ///< whether records are still on their way to the file
  int64_t free_places = 0;          ///< that rows have left, and none has taken
  int64_t into_places = 0;          ///< rows that took the place of one that had left, new ones too
  int64_t moved_up = 0;             ///< rows that moved in memory to close gaps, also where they left otherwise
  int64_t index_builds = 0;         ///< times that the index was built
  int64_t waits_to_leave = 0;       ///< times that rows left once all queued steps were waited for
};

/// Rows of which some numbers lie in host memory, and the bytes of these numbers there.
struct HostRows {
  int64_t rows = 0, bytes = 0;
  int64_t moved = 0;  ///< rows that came from the host to the device because they were used
  /// Occurrences of keys in training batches since rows are in host memory, and those whose rows were on the device.
  int64_t reads = 0, reads_on_device = 0;
  HostRows operator+(const HostRows& other) const {
    return {rows + other.rows, bytes + other.bytes, moved + other.moved, reads + other.reads,
            reads_on_device + other.reads_on_device};
  }
};

/// Bytes on the device: numbers of rows, and all else that a budget counts there.
struct DeviceBytes {
  int64_t numbers = 0, besides = 0;
  DeviceBytes operator+(const DeviceBytes& other) const { return {numbers + other.numbers, besides + other.besides}; }
};

/// The last whole checkpoint.
struct BaseCheckpoint {
  int64_t iteration, rows;  ///< rows: its first ones that still exist
  bool keys_moved = false;  ///< some of them have other keys now
};

}  // namespace hctr
