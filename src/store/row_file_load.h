// A load of a new table into a RowFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "store/block_writer.h"
#include "store/row_file.h"

namespace hctr {

/// Collects records in blocks. A block ends at a multiple of `records` records, which fill whole pages of the file
/// unless such a block would be too large.
struct RowFile::Load {
  Load(const fs::path&, int64_t record_bytes);
  /// Memory for at most `most` records from `record` on. filled() must follow.
  std::span<std::byte> room(int64_t record, int64_t most);
  void filled(int64_t records);
  /// Waits until all records are in the file.
  void finish();

  bool reserved = false;  // whether the file is longer than its records

 private:
  static constexpr int64_t kBytes = int64_t{4} << 20, kMostBytes = int64_t{32} << 20;
  static int64_t records_of_block(int64_t bytes);
  void write();
  int64_t bytes, records;  // bytes: size of a record; records: number of records in a block
  std::byte* block = nullptr;
  int64_t first = 0, count = 0;  // first record in `block`, and number of records
  BlockWriter writer;
};

}  // namespace hctr
