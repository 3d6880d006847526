#include "engine/spec/direct_keys.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {

DirectKeys direct_keys(const std::vector<int64_t>& slot_sizes, bool by_slot, const Placement& placement, int64_t rank,
                       int64_t first_key) {
  DirectKeys keys;
  keys.by_slot = by_slot;
  keys.pieces = placement.pieces;
  int64_t at = first_key;
  for (const int64_t size : slot_sizes) {
    const int64_t spans = by_slot ? keys.pieces : keys.first.empty() ? 1 : 0;
    for (int64_t piece = 0; piece < spans; ++piece) {
      keys.first.push_back(at);
      keys.size.push_back(by_slot ? size : 0);
    }
    if (!by_slot) keys.size.back() += size;
    at += size;
  }
  int64_t base = 0;
  for (size_t s = 0; s < keys.first.size(); ++s) {
    // If a span is sharded over the ranks, this rank owns one of every `step` keys, starting with its first own key.
    const int64_t step = placement.spread(static_cast<int64_t>(s)) ? placement.ranks : 1;
    const int64_t before = ((rank - keys.first[s]) % step + step) % step;
    int64_t count = std::max<int64_t>(0, (keys.size[s] - before + step - 1) / step);
    if (!placement.holds(rank, static_cast<int64_t>(s))) count = 0;
    keys.spans.push_back({keys.first[s] + before, count, base, step});
    base += count;
  }
  return keys;
}

DirectKeys replicated_keys(const DirectKeys& all, const Placement& placement) {
  DirectKeys keys;
  keys.by_slot = all.by_slot;
  int64_t base = 0;
  for (size_t s = 0; s < all.first.size(); s += static_cast<size_t>(all.pieces)) {
    const bool here = placement.replicated(static_cast<int64_t>(s));
    keys.first.push_back(all.first[s]);
    keys.size.push_back(all.size[s]);
    keys.spans.push_back({all.first[s], here ? all.size[s] : 0, base, here ? 1 : ops::KeySpan::kElsewhere});
    base += keys.spans.back().count;
  }
  return keys;
}

bool DirectKeys::has(int64_t key, int64_t slot) const {
  const auto span = static_cast<size_t>(by_slot ? slot : 0);
  return key >= first[span] && key < first[span] + size[span];
}

std::string DirectKeys::outside(int64_t key, int64_t slot) const {
  const auto span = static_cast<size_t>(by_slot ? slot : 0);
  if (of_options) return cat("key ", key, " is outside the rows 0 to ", size[span] - 1);
  return cat("key ", key, " of slot ", slot / pieces, " is outside the ", size[span], " keys from ", first[span],
             " to ", first[span] + size[span] - 1, " that \"slot_size_array\" gives ",
             by_slot ? "the slot" : "all slots together");
}

}  // namespace hctr
