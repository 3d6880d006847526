// Rows of text that are not right: what is to happen to them, how many there were, and the first of them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "base/log.h"

namespace hctr {

struct TextBlock;

struct BadRows {
  bool skip = false;  ///< leave them out and count them; else the first one is an error
  int64_t most = std::numeric_limits<int64_t>::max();  ///< more left out than these are an error
};

/// Those of a block, or of all that was read so far, left out.
struct BadRowsFound {
  int64_t count = 0;
  std::string first;  ///< where it is, and what is wrong with it

  /// The row that starts at `row` in line `line` of the block. Errors: Error(data) naming file, line, byte and problem,
  /// unless such rows are skipped.
  void add(const BadRows&, const TextBlock&, int64_t line, const char* row, const std::string& problem);
  /// Adds those of the next block. Errors: Error(data) when they are too many.
  void add(const BadRows&, const BadRowsFound& more);
  /// Says how many there were, if any.
  void tell(const Log&) const;
};

}  // namespace hctr
