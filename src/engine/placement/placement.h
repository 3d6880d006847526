// The placement: which rank owns which rows. Plain data, made by a plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/embedding/key_split.h"

namespace hctr {

/// The config's constraint on the plan. automatic: the plan decides freely. localized: the plan chooses only the owner
/// of each slot. distributed: all rows are sharded by key. data_parallel: all rows are replicated.
enum class PlacementRule {
  automatic,
  localized,
  distributed,
  data_parallel,  ///< all rows are replicated
  hybrid,         ///< hot rows are replicated, all other rows are placed as with automatic
};

/// The owners of one table's rows. The rows of a slot are all on one rank, sharded over all ranks by key, or replicated
/// on every rank. Vectors may be split into pieces of equal size. If so, each piece of a slot is placed separately, and
/// `slot` below means slot * pieces + piece.
struct Placement {
  static constexpr int32_t kSpread = -1, kReplicated = -2;
  int64_t ranks = 1;
  std::vector<int32_t> owners{};  ///< [slots]: a rank, kSpread or kReplicated; empty: every slot is kSpread
  int64_t pieces = 1;

  /// The placement if there is no plan: slot s is on rank s mod ranks. If the rule requires it, or if slots share rows,
  /// every slot is sharded by key instead. For a replicated table `ranks` is 1, because each rank is the only owner of
  /// its copy.
  static Placement without_plan(PlacementRule rule, bool identity_by_slot, int64_t slots, int64_t ranks) {
    if (rule == PlacementRule::data_parallel) return {};
    Placement placement{ranks, {}};
    const bool whole = rule != PlacementRule::distributed && identity_by_slot;
    for (int64_t s = 0; whole && s < slots; ++s) placement.owners.push_back(static_cast<int32_t>(s % ranks));
    return placement;
  }

  /// Whether all rows are replicated on each of `of_ranks` ranks; false if `of_ranks` is 1.
  bool replicated_on(int64_t of_ranks) const { return ranks == 1 && of_ranks > 1; }
  /// replicated(): whether the rows of this slot are replicated. some_replicated(): whether those of any slot are.
  /// Replicated rows have no owner and are not exchanged.
  bool replicated(int64_t slot) const { return !owners.empty() && owners.at(static_cast<size_t>(slot)) == kReplicated; }
  bool some_replicated() const { return std::find(owners.begin(), owners.end(), kReplicated) != owners.end(); }
  bool spread(int64_t slot) const { return owners.empty() || owners.at(static_cast<size_t>(slot)) == kSpread; }
  int64_t owner(int64_t slot, int64_t key) const {
    return spread(slot) ? ops::rank_of_key(key, static_cast<int32_t>(ranks)) : owners[static_cast<size_t>(slot)];
  }
  /// Whether `rank` may own keys of the slot.
  bool holds(int64_t rank, int64_t slot) const { return spread(slot) || owners[static_cast<size_t>(slot)] == rank; }
  bool operator==(const Placement&) const = default;
};

}  // namespace hctr
