// How many keys of scored samples a model does not know.
#pragma once

#include <cstdint>
#include <string>

namespace hctr {

/// The keys of a slot, and how many of them have no row in a table that reads the slot: they count as zero vectors.
struct SlotMatches {
  std::string slot;  ///< its column, or "<top>[<index>]"
  int64_t keys = 0, unmatched = 0;

  double share() const { return keys == 0 ? 0 : static_cast<double>(unmatched) / static_cast<double>(keys); }
};

}  // namespace hctr
