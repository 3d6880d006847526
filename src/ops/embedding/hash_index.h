// A hash table on the device that maps keys to row numbers; many threads insert concurrently.
#pragma once

#include "core/base/random.h"
#include "core/device/op.h"
#include "ops/embedding/key_batch.h"

namespace hctr::ops {

/// One entry of the table. `meta` is 0 if the entry is empty. Otherwise its upper half is the slot of the key's
/// identity + 1, and its lower half is the row. Because `meta` marks empty entries, `key` may have any value.
struct IndexEntry {
  int64_t key;
  uint64_t meta;
};

/// The state that changes while the table fills and grows. The state is in device memory, so that recorded CUDA graphs
/// stay valid when the table grows.
struct IndexState {
  uint64_t mask;          ///< number of entries - 1; the number of entries is a power of two
  uint32_t row_capacity;  ///< rows 1 to row_capacity may be assigned
  uint32_t rows;          ///< rows requested so far; more than row_capacity if requests were refused
  uint32_t ready;         ///< number of rows at the end of the last batch; all these rows are initialized
  uint32_t finished;      ///< number of rows at the end of the last finished step; lookups and snapshots see these rows
  uint32_t batches;       ///< batches closed so far
  uint32_t marks;         ///< tombstones: entries of removed keys, see index_remove()
};

/// The table, as passed to kernels. Row 0 means "no row": row 0 contributes nothing and is never updated.
struct HashIndex {
  IndexEntry* entries = nullptr;
  IndexState* state = nullptr;
  int64_t* row_keys = nullptr;   // [row_capacity + 1] the key of each row
  int32_t* row_slots = nullptr;  // [row_capacity + 1] the slot of each row; null: slots share rows
  uint32_t first_row = 1;        // first row that belongs to a key

  /// The slot in a key's identity; 0 if slots share rows.
  HCTR_HD int32_t identity_slot(int32_t slot) const { return row_slots ? slot : 0; }
  HCTR_HD static uint64_t hash(int64_t key, int32_t slot) {
    return mix64(static_cast<uint64_t>(key) ^ (static_cast<uint64_t>(slot) * 0xd6e8feb86659fd93ULL));
  }
  HCTR_HD static uint64_t tag(int32_t slot) { return (static_cast<uint64_t>(static_cast<uint32_t>(slot)) + 1) << 32; }
};

/// rows[p] = the row of key p of the batch. Inserts missing keys and assigns the next free row to each distinct missing
/// key. rows[p] is 0 if no row is free, and past the last key. The CPU numbers new rows in key order; a GPU numbers
/// them in any order.
HCTR_OP(void index_insert(Context&, HashIndex, KeyBatch, int32_t* rows))

/// rows[p] = the row of key p if the row existed when the last step finished, else 0. May run concurrently with
/// index_insert().
HCTR_OP(void index_find(Context&, HashIndex, KeyBatch, int32_t* rows))

/// Inserts rows first_row to state.rows into a table whose entries are all empty; skips rows with left[row] != 0 (null
/// `left`: no row is skipped). No other operation may use the table concurrently.
HCTR_OP(void index_rebuild(Context&, HashIndex, const uint8_t* left))

/// Writes the new row numbers to the entries of the keys of rows[i], after rows were moved. No other operation may use
/// the table concurrently.
HCTR_OP(void index_renumber(Context&, HashIndex, const int32_t* rows, int64_t count))

/// Removes the keys of rows[i]. Leaves a tombstone (kMark) in each entry; searches continue past tombstones.
/// state.marks counts the tombstones. Skips rows whose key has no entry. No other operation may use the table
/// concurrently.
HCTR_OP(void index_remove(Context&, HashIndex, const int32_t* rows, int64_t count))
/// Inserts the keys of rows[i] with these row numbers. The keys are distinct and have no entry. Each key uses an empty
/// entry or a tombstone; reuse of a tombstone decrements state.marks. index_find() may run concurrently, and may or may
/// not see each new key.
HCTR_OP(void index_enter(Context&, HashIndex, const int32_t* rows, int64_t count))

/// Closes a batch's insertions: sets state.ready and *rows_after to the number of assigned rows, and notifies the host
/// with one store: *host_word = state.batches (lower 32 bits) in the upper half, state.rows in the lower half.
HCTR_OP(void index_close_batch(Context&, HashIndex, uint32_t* rows_after, uint64_t* host_word))

/// Adds the rows state.rows + 1 to state.rows + count, which index_enter() inserted, as initialized rows. The rows
/// become visible to index_find() by index_finish_rows(), or when the step of a later batch ends.
HCTR_OP(void index_add_rows(Context&, HashIndex, uint32_t count))
/// Makes rows 1 to `rows` visible to index_find().
HCTR_OP(void index_finish_rows(Context&, HashIndex, uint32_t rows))

/// Ends a step: makes the first *rows_after rows visible to index_find().
HCTR_OP(void index_finish_step(Context&, HashIndex, const uint32_t* rows_after))

}  // namespace hctr::ops
