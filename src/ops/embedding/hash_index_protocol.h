// The protocol by which many threads find or insert keys in the hash table concurrently. Kernels and CPU threads run
// the same code, so that the thread sanitizer checks what runs on a GPU. `Access` reads and writes entries:
//
//   IndexEntry load(const IndexEntry&)               reads both words at once: a key always comes with its own meta
//   bool claim(IndexEntry&, uint64_t from, uint64_t meta)
//                                                    sets meta from `from` to `meta`; succeeds for one of several
//                                                    callers
//   void store(IndexEntry&, int64_t key, uint64_t)   writes both words at once
//
// An entry goes through the states: empty (meta 0) -> claimed (tag, kPending) -> keyed (key; tag, kNoRowYet) ->
// complete (key; tag, row). It is never emptied while the table is in use. The thread that claims an entry stores the
// key immediately, without waiting, and assigns the row later, when its whole block requests rows together.
//
// A removed key leaves a mark in its entry (kMark), with the tag of no slot: searches pass it like the entry of another
// key, so that later keys are still found. Only a key known to be absent may reuse it: a search that may find its key
// further on must not. Keys are removed while nothing else uses the table: a thread that has read an entry before would
// rely on it afterwards.
//
// No thread waits forever. A thread that meets a claimed entry with its own tag reads it again until the key is there:
// between claim and key the winner does nothing else. A thread that needs the row of a keyed entry waits only after its
// own search is done and its own rows are published, so that waiting threads hold nothing that others wait for. (A lane
// makes progress while others of its warp spin since compute capability 7.0; we require 7.5.)
//
// A key gets one entry: all searches for it visit the same entries in the same order and stop at the first that is
// empty, or claimed for a key that is not known yet. A claimed entry keeps its key, so no search passes the entry that
// the first one claimed.
#pragma once

#include "ops/embedding/hash_index.h"

namespace hctr::ops {

inline constexpr uint32_t kPending = 0xffffffffu, kNoRowYet = 0xfffffffeu;  // no rows: fewer than 2^31 fit
inline constexpr uint64_t kMark = 1;                                        // tags are above

/// The order in which entries are visited: the four of a line (64 bytes), one half after the other (memory moves at
/// least 32 bytes), then another line. The first entry in a line and the step between lines depend on the key, so that
/// full regions do not cluster.
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
  uint32_t row = 0;             ///< kNoRowYet: read the entry again later
  bool claimed = false;         ///< the entry is new and keyed, and this search must assign its row
};

HCTR_HD inline uint32_t row_in(uint64_t meta) { return static_cast<uint32_t>(meta); }
HCTR_HD inline bool same_tag(uint64_t a, uint64_t b) { return (a ^ b) >> 32 == 0; }

/// How many entries a search reads before it examines the first of them: in the line it begins with, and in later ones.
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
          if (!Access::claim(entry, 0, tag | kPending)) continue;
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

/// The row of (key, slot) if it was assigned no later than `last_row`, else 0. May run concurrently with insertions: an
/// entry without a row, or with a newer one, counts as another key's entry.
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

/// Publishes the row of an entry that this search claimed.
template <class Access>
HCTR_HD void publish_row(IndexEntry& entry, int64_t key, int32_t slot, uint32_t row) {
  Access::store(entry, key, HashIndex::tag(slot) | row);
}

/// Waits for the row of an entry that another thread claimed.
template <class Access>
HCTR_HD uint32_t wait_for_row(const IndexEntry& entry) {
  uint32_t row = kNoRowYet;
  while (row == kNoRowYet) row = row_in(Access::load(entry).meta);
  return row;
}

/// Sets the row in the entry of the row's key. Other threads may do so for other rows concurrently.
template <class Access>
HCTR_HD void renumber(const HashIndex& index, uint32_t row) {
  const int64_t key = index.row_keys[row];
  const int32_t slot = index.row_slots ? index.row_slots[row] : 0;
  const IndexSearch found = find_or_claim<Access, kFewestBytes>(index.entries, index.state->mask, key, slot);
  publish_row<Access>(*found.entry, key, slot, row);
}

/// Inserts (key, slot) with its row into a table that lacks it. Other threads may insert other keys concurrently.
template <class Access>
HCTR_HD void enter(IndexEntry* entries, uint64_t mask, int64_t key, int32_t slot, uint32_t row) {
  const uint64_t meta = HashIndex::tag(slot) | row;
  for (ProbeOrder order(HashIndex::hash(key, slot), mask); !order.exhausted(); order.next_line())
    for (int i = 0; i < ProbeOrder::kLine; ++i)
      if (IndexEntry& entry = entries[order.entry(i)]; Access::claim(entry, 0, meta))
        return Access::store(entry, key, meta);
}

/// The same while others search: (key, slot), which the table lacks, takes the first entry that is empty or has a mark.
/// Returns whether it had a mark.
template <class Access>
HCTR_HD bool enter_absent(IndexEntry* entries, uint64_t mask, int64_t key, int32_t slot, uint32_t row) {
  const uint64_t tag = HashIndex::tag(slot);
  for (ProbeOrder order(HashIndex::hash(key, slot), mask); !order.exhausted(); order.next_line())
    for (int i = 0; i < ProbeOrder::kLine; ++i) {
      IndexEntry& entry = entries[order.entry(i)];
      for (uint64_t seen = Access::load(entry).meta; seen == 0 || seen == kMark; seen = Access::load(entry).meta) {
        if (!Access::claim(entry, seen, tag | kPending)) continue;
        Access::store(entry, key, tag | row);
        return seen == kMark;
      }
    }
  return false;
}

/// Marks the entry of (key, slot) as removed. Nothing else may use the table meanwhile, except calls with other keys.
/// Returns whether there was one.
template <class Access>
HCTR_HD bool leave_mark(IndexEntry* entries, uint64_t mask, int64_t key, int32_t slot) {
  const uint64_t tag = HashIndex::tag(slot);
  for (ProbeOrder order(HashIndex::hash(key, slot), mask); !order.exhausted(); order.next_line())
    for (int i = 0; i < ProbeOrder::kLine; ++i) {
      IndexEntry& entry = entries[order.entry(i)];
      const IndexEntry seen = Access::load(entry);
      if (seen.meta == 0) return false;
      if (!same_tag(seen.meta, tag) || seen.key != key) continue;
      Access::store(entry, 0, kMark);
      return true;
    }
  return false;
}

}  // namespace hctr::ops
