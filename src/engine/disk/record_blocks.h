// Host buffers for the records of rows that move between a table and its disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/device/buffer.h"
#include "engine/disk/disk_rows.h"

namespace hctr {

/// Blocks of records: one block for incoming rows, and several for evicted rows, which are written while training
/// continues. The number of blocks depends on the rows in memory.
class RecordBlocks {
 public:
  /// `most_rows_at_a_time`: maximum rows that one lookup needs.
  RecordBlocks(Device, int64_t record_bytes, int64_t most_rows_at_a_time);

  /// Rows in transit: `numbers` are their row numbers in memory.
  struct Block {
    DiskRows::Row* entries;
    std::byte* records;
    int32_t* numbers;
  };
  /// Rows per block.
  size_t rows() const { return static_cast<size_t>(block_rows_); }
  /// Maximum records to read ahead if `rows_in_memory` rows are in memory.
  int64_t most_ahead(int64_t rows_in_memory) const;
  /// Bytes of all blocks.
  int64_t bytes(int64_t rows_in_memory) const { return blocks(rows_in_memory) * block_rows_ * record_bytes_; }

  Block coming() { return on_host(0); }
  /// The least recently used block for evicted rows. `rows_in_memory` determines the number of such blocks.
  Block next_leaving(int64_t rows_in_memory);

  /// in() lays out a block of `rows` rows in `memory`. rows_in() returns the maximum number of rows of a block in
  /// `bytes` bytes.
  Block in(std::byte* memory, size_t rows) const;
  size_t rows_in(size_t bytes) const;

 private:
  int64_t blocks(int64_t rows_in_memory) const;
  Block on_host(size_t which);

  Device device_;
  int64_t record_bytes_, rows_at_a_time_, block_rows_;
  std::vector<std::optional<HostBuffer>> memory_;
  size_t last_left_ = 0;
};

}  // namespace hctr
