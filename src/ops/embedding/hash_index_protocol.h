// How a key finds or gets its entry in the hash table when many threads look at once. One text for all who run it:
// kernels, and threads of the CPU, so that the thread sanitizer judges what runs on a GPU. How a entry is read and
// written is left to `Access`:
//
//   IndexEntry load(const IndexEntry&)              both words as one: never the key of one moment with the meta of
//   another bool claim(IndexEntry&, uint64_t meta)          meta from 0 to `meta`, for one of those who try at once
//   void store(IndexEntry&, int64_t key, uint64_t)  both words, as one
//
// A entry goes through: empty (meta 0) -> claimed (tag, kPending) -> keyed (key; tag, kNoRowYet) -> (key; tag, row). It
// is never emptied. Who claims a entry stores the key at once, waiting for nobody, and hands out the row later, when a
// whole block asks for rows together.
//
// Nobody waits for ever. Who meets a claimed entry of its own tag looks again until the key is there: between claim and
// key the winner does nothing else. Who needs the row of a keyed entry waits after its own search is done and its own
// rows are published, so those who wait hold nothing that others wait for. (A lane makes progress while others of its
// warp spin since compute capability 7.0; 7.5 is the least we run on.)
//
// One key gets one entry: all searches for it visit the same entries in the same order and stop at the first that is
// empty, or claimed for a key they cannot know yet. A entry once claimed keeps its key, so none can pass the entry the
// first one claimed.
#pragma once

#include "ops/embedding/hash_index.h"

namespace hctr::ops {

inline constexpr uint32_t kPending = 0xffffffffu, kNoRowYet = 0xfffffffeu;  // no rows: fewer than 2^31 fit

/// The order in which entries are visited: the four of a line (64 bytes), its two halves one after the other (32 bytes
/// are what memory moves at least), then another line. Where in a line it begins depends on the key, and so does the
/// step between lines, so that full stretches do not grow together.
class ProbeOrder {
 public:
  static constexpr int kLine = 4;
  HCTR_HD ProbeOrder(uint64_t hash, uint64_t mask)
      : line_mask_(mask / kLine), line_((hash >> 2) & line_mask_), step_((hash >> 40) | 1), first_(hash % kLine) {}
  /// The entry visited as number i of the line, 0 <= i < kLine.
  HCTR_HD uint64_t entry(int i) const { return line_ * kLine + (first_ ^ static_cast<uint64_t>(i)); }
  HCTR_HD void next_line() {
    line_ = (line_ + step_) & line_mask_;
    ++visited_;
  }
  /// Whether every entry has been visited.
  HCTR_HD bool exhausted() const { return visited_ > line_mask_; }

 private:
  uint64_t line_mask_, line_, step_, first_, visited_ = 0;
};

/// Where a search ended.
struct IndexSearch {
  IndexEntry* entry = nullptr;  ///< null: every entry belongs to another key
  uint32_t row = 0;             ///< kNoRowYet: look at the entry again later
  bool claimed = false;         ///< the entry is new, keyed, and this searcher's to give a row
};

HCTR_HD inline uint32_t row_in(uint64_t meta) { return static_cast<uint32_t>(meta); }
HCTR_HD inline bool same_tag(uint64_t a, uint64_t b) { return (a ^ b) >> 32 == 0; }

/// How many entries a search reads before it looks at the first of them: in the line it begins with, and in later ones.
/// 1 moves the fewest bytes, kLine waits for memory the fewest times.
struct AtOnce {
  int first_line, later_lines;
};
inline constexpr AtOnce kFewestBytes{1, 1}, kFewestWaits{2, ProbeOrder::kLine};

/// Looks for (key, slot) in the line that `order` is at, and claims an empty entry there if it comes to one. True: the
/// search is over.
template <class Access, int kCount>
HCTR_HD bool find_or_claim_in_line(IndexEntry* entries, const ProbeOrder& order, int64_t key, uint64_t tag,
                                   IndexSearch& found) {
  for (int group = 0; group < ProbeOrder::kLine; group += kCount) {
    IndexEntry read[kCount];
    for (int i = 0; i < kCount; ++i) read[i] = Access::load(entries[order.entry(group + i)]);
    for (int i = 0; i < kCount; ++i) {
      IndexEntry& entry = entries[order.entry(group + i)];
      for (IndexEntry seen = read[i];; seen = Access::load(entry)) {
        if (seen.meta == 0) {
          if (!Access::claim(entry, tag | kPending)) continue;
          Access::store(entry, key, tag | kNoRowYet);
          found = {&entry, kNoRowYet, true};
          return true;
        }
        if (!same_tag(seen.meta, tag)) break;
        if (row_in(seen.meta) == kPending) continue;
        if (seen.key != key) break;
        found = {&entry, row_in(seen.meta), false};
        return true;
      }
    }
  }
  return false;
}

/// The entry of (key, slot), claimed for it if it had none.
template <class Access, AtOnce kAtOnce>
HCTR_HD IndexSearch find_or_claim(IndexEntry* entries, uint64_t mask, int64_t key, int32_t slot) {
  IndexSearch found;
  const uint64_t tag = HashIndex::tag(slot);
  ProbeOrder order(HashIndex::hash(key, slot), mask);
  if (find_or_claim_in_line<Access, kAtOnce.first_line>(entries, order, key, tag, found)) return found;
  for (order.next_line(); !order.exhausted(); order.next_line())
    if (find_or_claim_in_line<Access, kAtOnce.later_lines>(entries, order, key, tag, found)) break;
  return found;
}

/// Looks for (key, slot) in the line that `order` is at. True: the search is over.
template <class Access, int kCount>
HCTR_HD bool find_row_in_line(const IndexEntry* entries, const ProbeOrder& order, uint32_t last_row, int64_t key,
                              uint64_t tag, uint32_t& row) {
  for (int group = 0; group < ProbeOrder::kLine; group += kCount) {
    IndexEntry read[kCount];
    for (int i = 0; i < kCount; ++i) read[i] = Access::load(entries[order.entry(group + i)]);
    for (const IndexEntry& seen : read) {
      if (seen.meta == 0) return true;
      if (!same_tag(seen.meta, tag) || row_in(seen.meta) > last_row || seen.key != key) continue;
      row = row_in(seen.meta);
      return true;
    }
  }
  return false;
}

/// The row of (key, slot) if it was handed out by the time `last_row` was, else 0. SideStream insertions: a entry
/// without a row, or with a newer one, is as good as another key's.
template <class Access, AtOnce kAtOnce>
HCTR_HD uint32_t find_row(const IndexEntry* entries, uint64_t mask, uint32_t last_row, int64_t key, int32_t slot) {
  uint32_t row = 0;
  const uint64_t tag = HashIndex::tag(slot);
  ProbeOrder order(HashIndex::hash(key, slot), mask);
  if (find_row_in_line<Access, kAtOnce.first_line>(entries, order, last_row, key, tag, row)) return row;
  for (order.next_line(); !order.exhausted(); order.next_line())
    if (find_row_in_line<Access, kAtOnce.later_lines>(entries, order, last_row, key, tag, row)) break;
  return row;
}

/// Gives a entry that this searcher claimed its row, for all to see.
template <class Access>
HCTR_HD void publish_row(IndexEntry& entry, int64_t key, int32_t slot, uint32_t row) {
  Access::store(entry, key, HashIndex::tag(slot) | row);
}

/// The row of a entry that somebody else claimed, once it is there.
template <class Access>
HCTR_HD uint32_t wait_for_row(const IndexEntry& entry) {
  uint32_t row = kNoRowYet;
  while (row == kNoRowYet) row = row_in(Access::load(entry).meta);
  return row;
}

/// Enters (key, slot) with its row into a table that lacks it, beside others who do the same with other keys.
template <class Access>
HCTR_HD void enter(IndexEntry* entries, uint64_t mask, int64_t key, int32_t slot, uint32_t row) {
  const uint64_t meta = HashIndex::tag(slot) | row;
  for (ProbeOrder order(HashIndex::hash(key, slot), mask); !order.exhausted(); order.next_line())
    for (int i = 0; i < ProbeOrder::kLine; ++i)
      if (IndexEntry& entry = entries[order.entry(i)]; Access::claim(entry, meta))
        return Access::store(entry, key, meta);
}

}  // namespace hctr::ops
