// Memory of the host for the records of rows on their way between a table and its disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/device/buffer.h"
#include "engine/disk/disk_rows.h"

namespace hctr {

/// Blocks of records: one for rows that come, and several for those that leave, as many as the rows in memory allow,
/// since they are written while training goes on.
class RecordBlocks {
 public:
  /// `most_rows_at_a_time`: that one lookup may need.
  RecordBlocks(Device, int64_t record_bytes, int64_t most_rows_at_a_time);

  /// Rows on their way, with their row numbers in memory.
  struct Block {
    DiskRows::Row* entries;
    std::byte* records;
    int32_t* numbers;
  };
  /// Of a block.
  size_t rows() const { return static_cast<size_t>(block_rows_); }
  /// Records that may be read ahead, where so many rows are in memory.
  int64_t most_ahead(int64_t rows_in_memory) const;
  /// Of records in all blocks.
  int64_t bytes(int64_t rows_in_memory) const { return blocks(rows_in_memory) * block_rows_ * record_bytes_; }

  Block coming() { return on_host(0); }
  /// The block that has been used the longest time ago, of as many as there may be.
  Block next_leaving(int64_t rows_in_memory);

  /// A block of so many rows in this memory, and the most that have room in so many bytes.
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
