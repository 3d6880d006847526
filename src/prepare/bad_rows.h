// Malformed rows of text: the policy for them, their count, and the first one.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/base/log.h"

namespace hctr {

struct TextBlock;

struct BadRows {
  bool skip = false;                                   ///< skip and count them; otherwise the first one is an error
  int64_t most = std::numeric_limits<int64_t>::max();  ///< more skipped rows than this are an error
};

/// Rows skipped in a block, or in all blocks so far.
struct BadRowsFound {
  int64_t count = 0;
  std::string first;  ///< place and problem of the first bad row

  /// Adds the row that starts at `row` in line `line` of the block. Errors: Error(data) naming file, line, byte and
  /// problem, unless bad rows are skipped.
  void add(const BadRows&, const TextBlock&, int64_t line, const char* row, const std::string& problem);
  /// Adds the counts of the next block. Errors: Error(data) when there are too many bad rows.
  void add(const BadRows&, const BadRowsFound& more);
  /// Logs the count as a warning if it is not 0.
  void report(const Log&) const;
};

}  // namespace hctr
