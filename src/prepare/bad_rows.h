// Malformed rows of text files: whether they are skipped, how many there were, and a description of the first one.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/base/log.h"

namespace hctr {

struct TextBlock;

struct BadRows {
  /// true: malformed rows are skipped and counted; false: the first one is an error
  bool skip = false;
  int64_t most = std::numeric_limits<int64_t>::max();  ///< maximum number of skipped rows; more are an error
};

/// The skipped rows of one block, or of all blocks so far.
struct BadRowsFound {
  int64_t count = 0;
  std::string first;  ///< position and problem of the first bad row

  /// Adds the bad row that starts at `row` in line `line` of the block. Errors: if bad rows are not skipped,
  /// Error(data) with file, line, byte and problem.
  void add(const BadRows&, const TextBlock&, int64_t line, const char* row, const std::string& problem);
  /// Adds the counts of the next block. Errors: Error(data) if the total exceeds BadRows::most.
  void add(const BadRows&, const BadRowsFound& more);
  /// Logs the count as a warning if it is nonzero.
  void report(const Log&) const;
};

}  // namespace hctr
