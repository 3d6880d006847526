// The position of a reader, compact enough to be saved with a model and sufficient to resume exactly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "config/json.h"

namespace hctr {

/// Identifies the next row to deliver. `file`: index in the pass's order of files.
struct ReaderPosition {
  int64_t pass = 0;
  int64_t file = 0, record = 0, offset = 0;  ///< a chunk boundary at or before the row
  int64_t rows = 0;  ///< good rows from that boundary to the row; when shuffling, to the window's first row
  /// when shuffling: window index in the pass, and number of rows delivered from that window
  int64_t window = 0, taken = 0;
  int64_t samples = 0;      ///< total delivered samples over all ranks
  int64_t bad_records = 0;  ///< total records skipped before the chunk boundary

  bool operator==(const ReaderPosition&) const = default;
};

/// Errors: Error(data) if position.file is not below `files`.
void expect_file_of(const ReaderPosition&, size_t files);
Json to_json(const ReaderPosition&);
/// Parses the JSON of to_json(). Errors: Error(data) for any other JSON.
ReaderPosition reader_position(const Json& json);

}  // namespace hctr
