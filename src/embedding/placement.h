// Which rank owns which key: pure arithmetic.
#pragma once

#include <cstdint>

namespace hctr {

/// Localized: a slot with all its keys lives on one rank. Distributed: the keys of every slot are spread over the
/// ranks.
struct Placement {
  enum class Kind { localized, distributed };
  Kind kind = Kind::localized;
  int64_t ranks = 1;

  int64_t owner(int64_t slot, int64_t key) const {
    if (kind == Kind::localized) return slot % ranks;
    const int64_t remainder = key % ranks;  // negative for negative keys
    return remainder < 0 ? remainder + ranks : remainder;
  }
  /// Whether `rank` may own keys of the slot.
  bool holds(int64_t rank, int64_t slot) const { return kind == Kind::distributed || slot % ranks == rank; }
};

}  // namespace hctr
