// Counts of rows and bytes per memory tier.
#pragma once

#include <cstdint>

namespace hctr {

/// Disk use of a table, and its traffic since the run began.
struct DiskUse {
  int64_t rows = 0, bytes = 0;    ///< currently on disk
  int64_t written = 0, read = 0;  ///< rows written and read, including reads for files
  /// needed: distinct rows in training batches since the first eviction; brought: how many of these rows were promoted
  int64_t needed = 0, brought = 0;
  int64_t ahead = 0;           ///< rows that look_ahead() found on disk
  int64_t read_ahead = 0;      ///< rows of `read` that look_ahead() had read in advance
  int64_t moved = 0;           ///< rows moved within the file by compaction
  double seconds = 0;          ///< seconds that steps, evaluations and saves waited for the disk
  bool unwritten = false;      ///< whether record writes are pending
  int64_t free_places = 0;     ///< row numbers of evicted rows that are not reused yet
  int64_t into_places = 0;     ///< rows that got the row number of an evicted row, including new rows
  int64_t moved_up = 0;        ///< rows moved in memory to close gaps
  int64_t index_builds = 0;    ///< rebuilds of the index
  int64_t waits_to_leave = 0;  ///< evictions that waited for all queued steps
};

/// Rows whose vectors and optimizer states are in host memory, and the bytes of these vectors and states.
struct HostRows {
  int64_t rows = 0, bytes = 0;
  int64_t moved = 0;  ///< rows moved from the host to the device because of frequent use
  /// reads: occurrences of keys in training batches since the first row got host memory. reads_on_device: how many of
  /// these occurrences found their row on the device.
  int64_t reads = 0, reads_on_device = 0;
  HostRows operator+(const HostRows& other) const {
    return {rows + other.rows, bytes + other.bytes, moved + other.moved, reads + other.reads,
            reads_on_device + other.reads_on_device};
  }
};

/// Bytes on the device that are charged to the budget. numbers: bytes of vectors and optimizer states. besides: all
/// other bytes.
struct DeviceBytes {
  int64_t numbers = 0, besides = 0;
  DeviceBytes operator+(const DeviceBytes& other) const { return {numbers + other.numbers, besides + other.besides}; }
};

/// The last full checkpoint of a table.
struct BaseCheckpoint {
  int64_t iteration, rows;  ///< rows: how many rows of the checkpoint still exist
  bool keys_moved = false;  ///< whether some row numbers now belong to other keys
};

}  // namespace hctr
