// The keys of a table with a direct index, as its config gives them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "embedding/placement.h"
#include "ops/embedding/direct_index.h"

namespace hctr {

/// Keys are counted through all slots: slot s has slot_sizes[s] of them, after those of the slots before it, slot 0
/// from `first_key` on. Where rows belong to slot and key a key must be in its own slot; where they belong to keys
/// alone, in any.
struct DirectKeys {
  std::vector<ops::KeySpan>
      spans;  ///< of this rank: one a slot, or one for all slots; empty: the table has a hash index
  std::vector<int64_t> first, size;  ///< of each span over all ranks, for messages
  bool by_slot = false;
  int64_t pieces = 1;  ///< of each row, as Placement has them: a span for each piece

  bool empty() const { return spans.empty(); }
  int64_t rows() const { return spans.empty() ? 0 : spans.back().base + spans.back().count; }
  /// The index, on the host.
  ops::DirectIndex index() const { return {spans.data(), static_cast<int64_t>(spans.size()), by_slot}; }
  /// Whether some rank has a row for it.
  bool has(int64_t key, int64_t slot) const;
  /// "key 70 of slot 2 is outside the 30 keys from 40 to 69 that "slot_size_array" gives the slot".
  std::string outside(int64_t key, int64_t slot) const;
};

/// The replicated slots of a table, for the table of these. Keys of other slots have no row there and are not out of
/// range.
DirectKeys replicated_keys(const DirectKeys&, const Placement&);

DirectKeys direct_keys(const std::vector<int64_t>& slot_sizes, bool by_slot, const Placement&, int64_t rank,
                       int64_t first_key = 0);

}  // namespace hctr
