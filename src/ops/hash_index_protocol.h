// How a key finds or gets its place in the hash table when many threads look at once. One text for all who run it: kernels, and
// threads of the CPU, so that the thread sanitizer judges what runs on a GPU. How a place is read and written is left to `Places`:
//
//   IndexEntry load(const IndexEntry&)              both words as one: never the key of one moment with the meta of another
//   bool claim(IndexEntry&, uint64_t meta)          meta from 0 to `meta`, for one of those who try at once
//   void store(IndexEntry&, int64_t key, uint64_t)  both words, as one
//
// A place goes through: empty (meta 0) -> claimed (tag, kPending) -> keyed (key; tag, kNoRowYet) -> (key; tag, row). It is never
// emptied. Who claims a place stores the key at once, waiting for nobody, and hands out the row later, when a whole warp asks for
// rows together.
//
// Nobody waits for ever. Who meets a claimed place of its own tag looks again until the key is there: between claim and key the
// winner does nothing else. Who needs the row of a keyed place waits after its own search is done and its own rows are
// published, so those who wait hold nothing that others wait for. (A lane makes progress while others of its warp spin since
// compute capability 7.0; 7.5 is the least we run on.)
//
// One key gets one place: all searches for it visit the same places in the same order and stop at the first that is empty, or
// claimed for a key they cannot know yet. A place once claimed keeps its key, so none can pass the place the first one claimed.
#pragma once

#include "ops/hash_index.h"

namespace hctr::ops {

inline constexpr uint32_t kPending = 0xffffffffu, kNoRowYet = 0xfffffffeu;  // no rows: fewer than 2^31 fit

/// The order in which places are visited: both halves of a line of four places (64 bytes; a half is what memory moves at
/// least), then another line. The step between lines depends on the key, so that full stretches do not grow together.
class ProbeOrder {
 public:
  HCTR_HD ProbeOrder(uint64_t hash, uint64_t mask)
      : line_mask_(mask >> 2), line_((hash >> 1) & line_mask_), step_((hash >> 40) | 1), half_(hash & 1) {}
  /// The first of two neighbouring places.
  HCTR_HD uint64_t first() const { return line_ << 2 | (half_ ^ second_) << 1; }
  HCTR_HD void next() {
    if (second_) line_ = (line_ + step_) & line_mask_;
    second_ ^= 1;
    ++visited_;
  }
  /// Whether every place has been visited.
  HCTR_HD bool exhausted() const { return visited_ > 2 * line_mask_ + 1; }

 private:
  uint64_t line_mask_, line_, step_, half_, second_ = 0, visited_ = 0;
};

/// Where a search ended.
struct IndexSearch {
  IndexEntry* place = nullptr;  ///< null: every place belongs to another key
  uint32_t row = 0;             ///< kNoRowYet: look at the place again later
  bool claimed = false;         ///< the place is new, keyed, and this searcher's to give a row
};

HCTR_HD inline uint32_t row_in(uint64_t meta) { return static_cast<uint32_t>(meta); }
HCTR_HD inline bool same_tag(uint64_t a, uint64_t b) { return (a ^ b) >> 32 == 0; }

/// The place of (key, slot), claimed for it if it had none.
template <class Places>
HCTR_HD IndexSearch find_or_claim(IndexEntry* entries, uint64_t mask, int64_t key, int32_t slot) {
  const uint64_t tag = HashIndex::tag(slot);
  for (ProbeOrder order(HashIndex::hash(key, slot), mask); !order.exhausted(); order.next()) {
    IndexEntry* pair = entries + order.first();
    const IndexEntry both[2] = {Places::load(pair[0]), Places::load(pair[1])};
    for (int i = 0; i < 2; ++i) {
      for (IndexEntry seen = both[i];; seen = Places::load(pair[i])) {
        if (seen.meta == 0) {
          if (!Places::claim(pair[i], tag | kPending)) continue;
          Places::store(pair[i], key, tag | kNoRowYet);
          return {pair + i, kNoRowYet, true};
        }
        if (!same_tag(seen.meta, tag)) break;
        if (row_in(seen.meta) == kPending) continue;
        if (seen.key == key) return {pair + i, row_in(seen.meta), false};
        break;
      }
    }
  }
  return {};
}

/// The row of (key, slot) if it was handed out by the time `last_row` was, else 0. Beside insertions: a place without a
/// row, or with a newer one, is as good as another key's.
template <class Places>
HCTR_HD uint32_t find_row(const IndexEntry* entries, uint64_t mask, uint32_t last_row, int64_t key, int32_t slot) {
  const uint64_t tag = HashIndex::tag(slot);
  for (ProbeOrder order(HashIndex::hash(key, slot), mask); !order.exhausted(); order.next()) {
    const IndexEntry* pair = entries + order.first();
    const IndexEntry both[2] = {Places::load(pair[0]), Places::load(pair[1])};
    for (const IndexEntry& seen : both) {
      if (seen.meta == 0) return 0;
      if (same_tag(seen.meta, tag) && row_in(seen.meta) <= last_row && seen.key == key) return row_in(seen.meta);
    }
  }
  return 0;
}

/// Gives a place that this searcher claimed its row, for all to see.
template <class Places>
HCTR_HD void publish_row(IndexEntry& place, int64_t key, int32_t slot, uint32_t row) {
  Places::store(place, key, HashIndex::tag(slot) | row);
}

/// The row of a place that somebody else claimed, once it is there.
template <class Places>
HCTR_HD uint32_t wait_for_row(const IndexEntry& place) {
  uint32_t row = kNoRowYet;
  while (row == kNoRowYet) row = row_in(Places::load(place).meta);
  return row;
}

/// Enters (key, slot) with its row into a table that lacks it, beside others who do the same with other keys.
template <class Places>
HCTR_HD void enter(IndexEntry* entries, uint64_t mask, int64_t key, int32_t slot, uint32_t row) {
  const uint64_t meta = HashIndex::tag(slot) | row;
  for (ProbeOrder order(HashIndex::hash(key, slot), mask); !order.exhausted(); order.next())
    for (IndexEntry* place = entries + order.first(), *end = place + 2; place < end; ++place)
      if (Places::claim(*place, meta)) return Places::store(*place, key, meta);
}

}  // namespace hctr::ops
