// Malformed rows of text: the policy for them, their number, and the first of them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "base/log.h"

namespace hctr {

struct TextBlock;

struct BadRows {
  bool skip = false;  ///< leave them out and count them; otherwise the first one is an error
  int64_t most = std::numeric_limits<int64_t>::max();  ///< error where more than these are left out
};

/// Rows left out of a block, or of all blocks so far.
struct BadRowsFound {
  int64_t count = 0;
  std::string first;  ///< place and problem of the first

  /// Adds the row that starts at `row` in line `line` of the block. Errors: Error(data) naming file, line, byte and
  /// problem, unless such rows are skipped.
  void add(const BadRows&, const TextBlock&, int64_t line, const char* row, const std::string& problem);
  /// Adds those of the next block. Errors: Error(data) when they are too many.
  void add(const BadRows&, const BadRowsFound& more);
  /// Logs their number as a warning, if there were any.
  void report(const Log&) const;
};

}  // namespace hctr
