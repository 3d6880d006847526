// The position of a reader: small enough to be saved with a model, and exact enough to resume from.
#pragma once

#include <cstddef>
#include <cstdint>

#include "config/json.h"

namespace hctr {

/// The next row to be delivered. `file` is an index in the order in which the pass visits the files.
struct ReaderPosition {
  int64_t pass = 0;
  int64_t file = 0, record = 0, offset = 0;  ///< a position between chunks, at or before the row
  int64_t rows = 0;  ///< good rows from that position to the row; when shuffling, to the window's first row
  int64_t window = 0, taken = 0;  ///< when shuffling: which window of the pass, and how many of its rows are delivered
  int64_t samples = 0;            ///< delivered since the very start, over all ranks
  int64_t bad_records = 0;        ///< skipped before that position, since the very start

  bool operator==(const ReaderPosition&) const = default;
};

/// Errors: Error(data) when a set of `files` files has no such file.
void expect_file_of(const ReaderPosition&, size_t files);
Json to_json(const ReaderPosition&);
/// Errors: Error(data) when `json` is not what to_json() writes.
ReaderPosition reader_position(const Json& json);

}  // namespace hctr
