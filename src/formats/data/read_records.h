// Reads some of the records of a file, all of one size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "formats/data/rank_slice.h"

namespace hctr {

/// Reads `bytes` bytes from `offset` on to `to`, as ByteFile::read_at() does.
using ReadAt = std::function<void(int64_t offset, std::byte* to, size_t bytes)>;

/// Reads the records of the spans, one after another, to `to`, which grows as needed; they count from the record at
/// `offset`. Records of `bytes` bytes between two spans are read with them where they take less than a page: reading it
/// costs less than a call. Errors: those of `read`.
void read_records(const ReadAt& read, int64_t offset, int64_t bytes, std::span<const RowSpan> spans,
                  std::vector<std::byte>& to);

}  // namespace hctr
