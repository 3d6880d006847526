// The keys of a table with direct keys, as the config defines them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/placement/placement.h"
#include "ops/embedding/direct_index.h"

namespace hctr {

/// Keys are numbered consecutively through all slots. Slot 0 starts at `first_key`. Slot s has slot_sizes[s] keys,
/// which follow the keys of slot s - 1. If by_slot, a key may occur only in its own slot; if not, in any slot.
struct DirectKeys {
  std::vector<ops::KeySpan>
      spans;  ///< this rank's spans: one per slot, or one for all slots; empty: the table has a hash index
  std::vector<int64_t> first, size;  ///< [span]: first key and number of keys on all ranks; for messages
  bool by_slot = false;
  int64_t pieces = 1;       ///< pieces per row, as in Placement; every piece has a span
  bool of_options = false;  ///< whether messages name an option of an EmbeddingSet instead of a config field

  /// Returns a copy with of_options set. Messages of the copy name options of an EmbeddingSet.
  DirectKeys named_rows() && {
    of_options = true;
    return std::move(*this);
  }
  bool empty() const { return spans.empty(); }
  int64_t rows() const { return spans.empty() ? 0 : spans.back().base + spans.back().count; }
  /// The arithmetic index, with host pointers.
  ops::DirectIndex index() const { return {spans.data(), static_cast<int64_t>(spans.size()), by_slot}; }
  /// Whether the key has a row on any rank.
  bool has(int64_t key, int64_t slot) const;
  /// Describes a key outside its range, such as: "key 70 of slot 2 is outside the 30 keys from 40 to 69 that
  /// "slot_size_array" gives the slot".
  std::string outside(int64_t key, int64_t slot) const;
};

/// The keys of the replicated slots, for a table of only these slots. Keys of other slots have no row in that table and
/// are not reported as out of range.
DirectKeys replicated_keys(const DirectKeys&, const Placement&);

DirectKeys direct_keys(const std::vector<int64_t>& slot_sizes, bool by_slot, const Placement&, int64_t rank,
                       int64_t first_key = 0);

}  // namespace hctr
