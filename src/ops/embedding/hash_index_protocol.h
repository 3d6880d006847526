// The protocol for concurrent lookups and insertions in the hash table. Kernels and CPU threads run the same code, so
// the thread sanitizer can check the protocol. `Access` reads and writes entries:
//
//   IndexEntry load(const IndexEntry&)               reads both words atomically
//   bool claim(IndexEntry&, uint64_t from, uint64_t meta)
//                                                    compare-and-swap of meta; succeeds for one of several callers
//   void store(IndexEntry&, int64_t key, uint64_t)   writes both words atomically
//
// An entry has four states: empty (meta 0) -> claimed (tag, kPending) -> keyed (key; tag, kNoRowYet) -> complete (key;
// tag, row). No entry becomes empty again while the table is in use. A thread that claims an entry stores the key
// immediately. The thread assigns the row later, when its whole block requests rows together.
//
// A removed key leaves a tombstone (kMark) in its entry. A tombstone's tag matches no slot, so searches continue past
// it and still find later keys. Only the insertion of a key known to be absent may reuse a tombstone; otherwise the key
// could also be in a later entry. Keys are removed only while no other operation uses the table, because a thread may
// rely on an entry after reading it.
//
// No thread waits forever. A thread that reads a claimed entry with its own tag polls the entry until the key is
// stored; the claiming thread stores the key right after the claim. A thread waits for the row of a keyed entry only
// after its own search is done and its own rows are published. Waiting threads therefore never block each other. (Since
// compute capability 7.0, a lane makes progress while other lanes of its warp spin; we require 7.5.)
//
// A key gets only one entry. All searches for a key visit the same entries in the same order. A search stops at the
// first entry that is empty, or that is claimed and has no key yet. A claimed entry keeps its key, so no later search
// passes the entry that the first search claimed.
#pragma once

#include "ops/embedding/hash_index.h"

namespace hctr::ops {

// values that are not row numbers, because rows are below 2^31
inline constexpr uint32_t kPending = 0xffffffffu, kNoRowYet = 0xfffffffeu;
// `meta` of a tombstone; never the meta of a key, whose tag is at least 2^32
inline constexpr uint64_t kMark = 1;

/// The probe order. A search visits the four entries of a 64-byte line, one 32-byte sector after the other, then the
/// next line. The first entry in a line and the step between lines depend on the hash, so that full regions do not
/// cluster.
class ProbeOrder {
 public:
  static constexpr int kLine = 4;
  HCTR_HD ProbeOrder(uint64_t hash, uint64_t mask)
      : line_mask_(mask / kLine), line_((hash >> 2) & line_mask_), step_((hash >> 40) | 1), first_(hash % kLine) {}
  /// Index of the i-th visited entry of the line, 0 <= i < kLine.
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

/// The result of a search.
struct IndexSearch {
  IndexEntry* entry = nullptr;  ///< null: every entry belongs to another key
  uint32_t row = 0;             ///< kNoRowYet: the row is not published yet
  bool claimed = false;         ///< this search claimed the entry and must assign its row
};

HCTR_HD inline uint32_t row_in(uint64_t meta) { return static_cast<uint32_t>(meta); }
HCTR_HD inline bool same_tag(uint64_t a, uint64_t b) { return (a ^ b) >> 32 == 0; }

/// How many entries a search loads before it examines the first of them, in the search's first line and in later lines.
/// 1 minimizes traffic, kLine minimizes memory latency.
struct AtOnce {
  int first_line, later_lines;
};
inline constexpr AtOnce kFewestBytes{1, 1}, kFewestWaits{2, ProbeOrder::kLine};

/// Searches for (key, slot) in the current line of `order`. Claims the first empty entry of the line, unless an earlier
/// entry has the key. Returns true if the search is over.
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

/// Returns the entry of (key, slot). Claims an entry if the key has none.
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

/// Searches for (key, slot) in the current line of `order`. Returns true if the search is over.
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

/// Returns the row of (key, slot) if it is at most `last_row`, else 0. May run concurrently with insertions, because an
/// entry without a row, or with a later row, is skipped like another key's entry.
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

/// Polls the entry until the thread that claimed it publishes the row.
template <class Access>
HCTR_HD uint32_t wait_for_row(const IndexEntry& entry) {
  uint32_t row = kNoRowYet;
  while (row == kNoRowYet) row = row_in(Access::load(entry).meta);
  return row;
}

/// Writes `row` to the entry of the row's key. Threads may renumber other rows concurrently.
template <class Access>
HCTR_HD void renumber(const HashIndex& index, uint32_t row) {
  const int64_t key = index.row_keys[row];
  const int32_t slot = index.row_slots ? index.row_slots[row] : 0;
  const IndexSearch found = find_or_claim<Access, kFewestBytes>(index.entries, index.state->mask, key, slot);
  publish_row<Access>(*found.entry, key, slot, row);
}

/// Inserts (key, slot) with its row; the table must not contain the key. Threads may insert other keys concurrently.
template <class Access>
HCTR_HD void enter(IndexEntry* entries, uint64_t mask, int64_t key, int32_t slot, uint32_t row) {
  const uint64_t meta = HashIndex::tag(slot) | row;
  for (ProbeOrder order(HashIndex::hash(key, slot), mask); !order.exhausted(); order.next_line())
    for (int i = 0; i < ProbeOrder::kLine; ++i)
      if (IndexEntry& entry = entries[order.entry(i)]; Access::claim(entry, 0, meta))
        return Access::store(entry, key, meta);
}

/// Like enter(), but allows concurrent searches: (key, slot), which must be absent, gets the first entry that is empty
/// or a tombstone. Returns whether the entry was a tombstone.
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

/// Replaces the entry of (key, slot) by a tombstone. Only calls with other keys may run concurrently. Returns whether
/// the key had an entry.
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
