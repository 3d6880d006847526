// Rules for the rows of a table: which keys get a row, which rows are removed, and what happens when the table is full.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/values.h"

namespace hctr {

/// What a table does if a batch adds more keys than its row limit permits.
enum class WhenFull {
  error,      ///< stop before the batch changes anything
  evict_lru,  ///< the least recently used rows are evicted
  evict_lfu,  ///< the least frequently used rows are evicted
  ignore,     ///< new keys share one row
};
template <>
struct EnumWords<WhenFull> {
  static const std::vector<std::pair<std::string, WhenFull>>& table();
};

struct RowPolicy {
  WhenFull when_full = WhenFull::error;
  int64_t expire_after = 0;             ///< rows whose key did not occur for this many steps are removed; 0: never
  int64_t min_count = 1;                ///< number of occurrences at which a key gets a row
  double admit_probability = 1;         ///< probability, per bag with an unknown key, that the key gets a row
  int64_t max_candidates = 10'000'000;  ///< maximum number of candidates: keys that are counted but have no row
  bool of_candidates = false;   ///< the table stores candidates, which are counted but have no row in the main table
  bool finds_frequent = false;  ///< counts occurrences to find the most frequent keys; removes no rows
  bool counts_keys = false;     ///< counts occurrences only to save them with the table

  bool tracks_last_step() const { return when_full == WhenFull::evict_lru || expire_after > 0; }
  bool counts_occurrences() const {
    return when_full == WhenFull::evict_lfu || of_candidates || finds_frequent || counts_keys;
  }
  /// Whether access statistics are exported with the rows.
  bool keeps_access_stats() const { return tracks_last_step() || (counts_occurrences() && !finds_frequent); }
  bool evicts() const { return when_full == WhenFull::evict_lru || when_full == WhenFull::evict_lfu; }
  bool removes_rows() const { return when_full != WhenFull::error || expire_after > 0; }
  bool shares_row() const { return when_full == WhenFull::ignore; }
  /// Whether a key is looked up first, and inserted only if it is admitted.
  bool guards_entry() const { return min_count > 1 || admit_probability < 1 || shares_row(); }
  bool any() const { return removes_rows() || guards_entry(); }

  /// At step `step`, rows last seen before the returned step expire. 0 if no rows expire at this step.
  int64_t expired_before(int64_t step) const {
    if (expire_after == 0 || step % std::max<int64_t>(1, expire_after / 16) != 0) return 0;
    return std::max<int64_t>(0, step - expire_after);
  }
  /// How many rows an eviction keeps. This is fewer than the limit, so that evictions are rare.
  static int64_t rows_left(int64_t limit) { return limit - limit / 16; }
};

}  // namespace hctr
