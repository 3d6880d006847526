// Which rank owns which key: pure arithmetic.
#pragma once

#include <cstdint>

#include "ops/key_blocks.h"

namespace hctr {

/// What a config says of it. automatic: as the embedding's type says.
enum class PlacementRule {
  automatic,
  localized,
  distributed,
  data_parallel,  ///< every row on every rank
  hybrid,         ///< frequent rows on every rank
};

/// Localized: a slot with all its keys lives on one rank. Distributed: the keys of every slot are spread over the
/// ranks.
struct Placement {
  enum class Kind { localized, distributed };
  Kind kind = Kind::localized;
  int64_t ranks = 1;

  ops::KeyOwner owners() const { return {kind == Kind::distributed, static_cast<int32_t>(ranks)}; }
  int64_t owner(int64_t slot, int64_t key) const { return owners()(slot, key); }
  /// Whether `rank` may own keys of the slot.
  bool holds(int64_t rank, int64_t slot) const { return kind == Kind::distributed || slot % ranks == rank; }
};

}  // namespace hctr
