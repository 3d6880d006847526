// Reads selected fixed-size records of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "formats/data/rank_slice.h"

namespace hctr {

/// Reads `bytes` bytes at `offset` into `to`, like ByteFile::read_at().
using ReadAt = std::function<void(int64_t offset, std::byte* to, size_t bytes)>;

/// Reads the records of the spans contiguously into `to`, which grows as needed. `offset`: file offset of record 0.
/// `bytes`: bytes per record. A gap of less than one page between two spans is read, too, because reading the gap costs
/// less than another call. Errors: those of `read`.
void read_records(const ReadAt& read, int64_t offset, int64_t bytes, std::span<const RowSpan> spans,
                  std::vector<std::byte>& to);

}  // namespace hctr
