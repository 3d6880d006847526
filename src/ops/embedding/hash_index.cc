#include "ops/embedding/hash_index.h"

#include <algorithm>
#include <atomic>

#include "core/base/prefetch.h"
#include "ops/embedding/direct_index.h"
#include "ops/embedding/hash_index_protocol.h"

namespace hctr::ops {

void index_insert(Context& ctx, HashIndex index, KeyBatch batch, int32_t* rows) {
  HCTR_ON_DEVICE(ctx, index_insert(ctx, index, batch, rows));
}
void index_find(Context& ctx, HashIndex index, KeyBatch batch, int32_t* rows) {
  HCTR_ON_DEVICE(ctx, index_find(ctx, index, batch, rows));
}
void index_rebuild(Context& ctx, HashIndex index, const uint8_t* left) {
  HCTR_ON_DEVICE(ctx, index_rebuild(ctx, index, left));
}
void index_renumber(Context& ctx, HashIndex index, const int32_t* rows, int64_t count) {
  HCTR_ON_DEVICE(ctx, index_renumber(ctx, index, rows, count));
}
void index_remove(Context& ctx, HashIndex index, const int32_t* rows, int64_t count) {
  HCTR_ON_DEVICE(ctx, index_remove(ctx, index, rows, count));
}
void index_enter(Context& ctx, HashIndex index, const int32_t* rows, int64_t count) {
  HCTR_ON_DEVICE(ctx, index_enter(ctx, index, rows, count));
}
void index_close_batch(Context& ctx, HashIndex index, uint32_t* rows_after, uint64_t* host_word) {
  HCTR_ON_DEVICE(ctx, index_close_batch(ctx, index, rows_after, host_word));
}
void index_add_rows(Context& ctx, HashIndex index, uint32_t count) {
  HCTR_ON_DEVICE(ctx, index_add_rows(ctx, index, count));
}
void index_finish_rows(Context& ctx, HashIndex index, uint32_t rows) {
  HCTR_ON_DEVICE(ctx, index_finish_rows(ctx, index, rows));
}
void index_finish_step(Context& ctx, HashIndex index, const uint32_t* rows_after) {
  HCTR_ON_DEVICE(ctx, index_finish_step(ctx, index, rows_after));
}

namespace cpu {
namespace {

/// Entry access without atomics: for one writing thread, or any number of reading threads.
struct PlainAccess {
  static IndexEntry load(const IndexEntry& entry) { return entry; }
  static bool claim(IndexEntry& entry, uint64_t from, uint64_t meta) {
    if (entry.meta == from) entry.meta = meta;
    return entry.meta == meta;
  }
  static void store(IndexEntry& entry, int64_t key, uint64_t meta) { entry = {key, meta}; }
};

/// rows[p] = the row of keys[p] for p in [begin, end); 0 for keys that are not in the table. All keys are of one slot.
/// Prefetches entries ahead, because lookups in a large table are bound by memory latency.
void find_range(const HashIndex& index, const int64_t* keys, int32_t slot, int64_t begin, int64_t end,
                uint32_t last_row, int32_t* rows) {
  constexpr int64_t kAhead = 16;
  const uint64_t mask = index.state->mask;
  for (int64_t p = begin; p < end; ++p) {
    if (p + kAhead < end) prefetch(&index.entries[ProbeOrder(HashIndex::hash(keys[p + kAhead], slot), mask).entry(0)]);
    rows[p] = static_cast<int32_t>(find_row<PlainAccess, kFewestBytes>(index.entries, mask, last_row, keys[p], slot));
  }
}

void find_all(Context& ctx, const HashIndex& index, const KeyBatch& batch, uint32_t last_row, int32_t* rows) {
  const int64_t count = batch.size();
  ctx.threads().parallel_for(count, 2048, [&](int64_t begin, int64_t end) {
    for (int64_t s = 0; s < batch.slots; ++s) {
      const int64_t first = std::max<int64_t>(begin, batch.offsets[s * batch.samples]);
      const int64_t last = std::min<int64_t>(end, batch.offsets[(s + 1) * batch.samples]);
      find_range(index, batch.keys, index.identity_slot(batch.slot_number(s)), first, last, last_row, rows);
    }
  });
  std::fill(rows + count, rows + batch.key_capacity, 0);
}

RowOwner owner_of(const HashIndex& index, int32_t row) {
  return {index.row_keys[row], index.row_slots ? index.row_slots[row] : 0};
}

constexpr int64_t kRowsAhead = 16;  // entries are prefetched for the row that comes this many rows later

/// Prefetches the entry where the search for the row's key starts.
[[gnu::always_inline]] inline void prefetch_entry(const HashIndex& index, int32_t row) {
  const RowOwner owner = owner_of(index, row);
  prefetch(&index.entries[ProbeOrder(HashIndex::hash(owner.key, owner.slot), index.state->mask).entry(0)]);
}

}  // namespace

void index_insert(Context& ctx, HashIndex index, KeyBatch batch, int32_t* rows) {
  // finds the existing keys in parallel; most keys exist
  find_all(ctx, index, batch, kNoRowYet - 1, rows);
  IndexState& state = *index.state;
  for (int64_t s = 0; s < batch.slots; ++s) {
    const int32_t slot = index.identity_slot(batch.slot_number(s));
    for (int64_t p = batch.offsets[s * batch.samples]; p < batch.offsets[(s + 1) * batch.samples]; ++p) {
      if (rows[p] != 0) continue;
      const IndexSearch found =
          find_or_claim<PlainAccess, kFewestBytes>(index.entries, state.mask, batch.keys[p], slot);
      uint32_t row = found.row;
      if (found.claimed) {
        row = ++state.rows <= state.row_capacity ? state.rows : 0;
        if (row != 0) {
          index.row_keys[row] = batch.keys[p];
          if (index.row_slots) index.row_slots[row] = slot;
        }
        publish_row<PlainAccess>(*found.entry, batch.keys[p], slot, row);
      }
      rows[p] = static_cast<int32_t>(row);
    }
  }
}

void index_find(Context& ctx, HashIndex index, KeyBatch batch, int32_t* rows) {
  find_all(ctx, index, batch, index.state->finished, rows);
}

void index_rebuild(Context&, HashIndex index, const uint8_t* left) {
  const uint32_t rows = std::min(index.state->rows, index.state->row_capacity);
  for (uint32_t row = index.first_row; row <= rows; ++row) {
    if (left && left[row] != 0) continue;
    const int32_t slot = index.row_slots ? index.row_slots[row] : 0;
    enter<PlainAccess>(index.entries, index.state->mask, index.row_keys[row], slot, row);
  }
}

void index_renumber(Context&, HashIndex index, const int32_t* rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i) renumber<PlainAccess>(index, static_cast<uint32_t>(rows[i]));
}

void index_remove(Context&, HashIndex index, const int32_t* rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (i + kRowsAhead < count) prefetch_entry(index, rows[i + kRowsAhead]);
    const RowOwner owner = owner_of(index, rows[i]);
    index.state->marks += leave_mark<PlainAccess>(index.entries, index.state->mask, owner.key, owner.slot);
  }
}

void index_enter(Context&, HashIndex index, const int32_t* rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (i + kRowsAhead < count) prefetch_entry(index, rows[i + kRowsAhead]);
    const RowOwner owner = owner_of(index, rows[i]);
    index.state->marks -= enter_absent<PlainAccess>(index.entries, index.state->mask, owner.key, owner.slot,
                                                    static_cast<uint32_t>(rows[i]));
  }
}

void index_close_batch(Context&, HashIndex index, uint32_t* rows_after, uint64_t* host_word) {
  IndexState& state = *index.state;
  *rows_after = state.ready = std::min(state.rows, state.row_capacity);
  ++state.batches;
  std::atomic_ref<uint64_t>(*host_word)
      .store(static_cast<uint64_t>(state.batches) << 32 | state.rows, std::memory_order_release);
}

void index_add_rows(Context&, HashIndex index, uint32_t count) { index.state->ready = index.state->rows += count; }

void index_finish_rows(Context&, HashIndex index, uint32_t rows) { index.state->finished = rows; }

void index_finish_step(Context&, HashIndex index, const uint32_t* rows_after) { index.state->finished = *rows_after; }

}  // namespace cpu
}  // namespace hctr::ops
