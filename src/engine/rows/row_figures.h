// Numbers of rows in each kind of memory.
#pragma once

#include <cstdint>

namespace hctr {

/// Use of a disk by a table, and traffic since the run began.
struct DiskUse {
  int64_t rows = 0, bytes = 0;      ///< there now
  int64_t written = 0, read = 0;    ///< rows, also for files
  int64_t needed = 0, brought = 0;  ///< distinct rows of training batches since some are on disk; those fetched
  int64_t ahead = 0;                ///< rows that look_ahead() has found on disk
  int64_t read_ahead = 0;           ///< those of `read` that look_ahead() had read
  int64_t moved = 0;                ///< rows rewritten to be contiguous
  double seconds = 0;               ///< waiting time of steps, evaluations and files
  bool unwritten = false;           ///< whether records are still being written
  int64_t free_places = 0;          ///< places of evicted rows that are not reused
  int64_t into_places = 0;          ///< rows that reused such a place, including new ones
  int64_t moved_up = 0;             ///< rows moved in memory to close gaps
  int64_t index_builds = 0;         ///< rebuilds of the index
  int64_t waits_to_leave = 0;       ///< evictions that waited for all queued steps
};

/// Rows with numbers in host memory, and the bytes of these numbers.
struct HostRows {
  int64_t rows = 0, bytes = 0;
  int64_t moved = 0;  ///< rows moved from the host to the device because of their use
  /// Occurrences of keys in training batches since rows are in host memory, and those whose rows were on the device.
  int64_t reads = 0, reads_on_device = 0;
  HostRows operator+(const HostRows& other) const {
    return {rows + other.rows, bytes + other.bytes, moved + other.moved, reads + other.reads,
            reads_on_device + other.reads_on_device};
  }
};

/// Bytes on the device: numbers of rows, and everything else that a budget counts there.
struct DeviceBytes {
  int64_t numbers = 0, besides = 0;
  DeviceBytes operator+(const DeviceBytes& other) const { return {numbers + other.numbers, besides + other.besides}; }
};

/// The last full checkpoint.
struct BaseCheckpoint {
  int64_t iteration, rows;  ///< rows: those of its rows that still exist
  bool keys_moved = false;  ///< some of them have other keys now
};

}  // namespace hctr
