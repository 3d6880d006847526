// Counts, for scored samples, the keys that have no row in the model's tables, and the values that a vocabulary lacks.
#pragma once

#include <cstdint>
#include <string>

namespace hctr {

/// For one slot of the scored samples: how many keys, values and groups match nothing.
struct SlotMatches {
  std::string slot;                 ///< name of the slot's column; without column names, "<top>[<index>]"
  int64_t keys = 0, unmatched = 0;  ///< unmatched: keys without a row in some table of the slot, whose vector is 0
  bool has_rows = true;             ///< false: keys of this slot have no rows of their own, and are not counted
  /// For a slot with a vocabulary: the number of all values, and of out-of-vocabulary values, which share one key.
  bool has_vocabulary = false;
  int64_t values = 0, unlisted = 0;
  /// For the slot whose values are the groups of GroupedAUC: the number of samples, and the number of samples without a
  /// value. GroupedAUC ignores samples without a value.
  bool of_groups = false;
  int64_t samples = 0, without_group = 0;

  double share() const { return share_of(unmatched, keys); }
  double unlisted_share() const { return share_of(unlisted, values); }
  double without_group_share() const { return share_of(without_group, samples); }
  static double share_of(int64_t part, int64_t all) {
    return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
  }
};

}  // namespace hctr
