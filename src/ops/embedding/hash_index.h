// A hash table from keys to row numbers, on the device, filled by many threads concurrently.
#pragma once

#include "core/base/random.h"
#include "core/device/op.h"
#include "ops/embedding/key_batch.h"

namespace hctr::ops {

/// One entry of the table. `meta` is 0 if the entry is empty; otherwise it holds the identity's slot + 1 in the upper
/// half and the row in the lower half. So every value of a key is allowed.
struct IndexEntry {
  int64_t key;
  uint64_t meta;
};

/// The state that changes while the table fills and grows. On the device: kernels read it there, so that recorded work
/// stays valid when the table has grown.
struct IndexState {
  uint64_t mask;          ///< entries - 1; entries are a power of two
  uint32_t row_capacity;  ///< rows 1 to row_capacity may be assigned
  uint32_t rows;          ///< rows requested so far; more than row_capacity if some were refused
  uint32_t ready;         ///< rows at the end of the last batch: they have their initial values
  uint32_t finished;      ///< rows as of the last finished step: what lookups and snapshots see
  uint32_t batches;       ///< closed so far
  uint32_t marks;         ///< entries whose keys have gone, see index_remove()
};

/// The table, as passed to kernels. Row 0 means "no row": it contributes nothing and is never updated.
struct HashIndex {
  IndexEntry* entries = nullptr;
  IndexState* state = nullptr;
  int64_t* row_keys = nullptr;   // [row_capacity + 1] the key of each row
  int32_t* row_slots = nullptr;  // the slot of each row; null: a key has the same row in every slot
  uint32_t first_row = 1;        // the first that belongs to a key

  /// The slot that a key's identity includes.
  HCTR_HD int32_t identity_slot(int32_t slot) const { return row_slots ? slot : 0; }
  HCTR_HD static uint64_t hash(int64_t key, int32_t slot) {
    return mix64(static_cast<uint64_t>(key) ^ (static_cast<uint64_t>(slot) * 0xd6e8feb86659fd93ULL));
  }
  HCTR_HD static uint64_t tag(int32_t slot) { return (static_cast<uint64_t>(static_cast<uint32_t>(slot)) + 1) << 32; }
};

/// rows[p] = the row of key p of the batch; keys not in the table are added, each under the next free row. A key that
/// occurs many times gets one row. Row 0 where every row is taken, and past the last key. On the CPU new rows are
/// numbered in the order of keys; on a GPU in any order.
HCTR_OP(void index_insert(Context&, HashIndex, KeyBatch, int32_t* rows))

/// rows[p] = the row of key p if it was there when the last step finished, else 0. May run concurrently with
/// index_insert.
HCTR_OP(void index_find(Context&, HashIndex, KeyBatch, int32_t* rows))

/// Inserts rows first_row to state.rows into a table whose entries are all empty, except rows whose `left` is not 0
/// (null: all rows). Nothing else may use it meanwhile.
HCTR_OP(void index_rebuild(Context&, HashIndex, const uint8_t* left))

/// Sets new row numbers in the entries of the keys of rows[i], after rows changed places. Nothing else may use the
/// table meanwhile.
HCTR_OP(void index_renumber(Context&, HashIndex, const int32_t* rows, int64_t count))

/// Removes the keys of rows[i]. A mark stays in each entry; searches continue past it, and state.marks counts it. Rows
/// whose key has no entry are skipped. Nothing else may use the table meanwhile.
HCTR_OP(void index_remove(Context&, HashIndex, const int32_t* rows, int64_t count))
/// Inserts the keys of rows[i], which are distinct and have no entry, with these row numbers. They reuse marks, which
/// state.marks then no longer counts, or empty entries. index_find may run concurrently, and sees each of them or not.
HCTR_OP(void index_enter(Context&, HashIndex, const int32_t* rows, int64_t count))

/// Ends the insertions of a batch: state.ready and *rows_after become the number of assigned rows, and the host is
/// notified:
/// *host_word = state.batches (lower 32 bits) in the upper half, state.rows in the lower half, in one store.
HCTR_OP(void index_close_batch(Context&, HashIndex, uint32_t* rows_after, uint64_t* host_word))

/// Declares rows state.rows + 1 to state.rows + count, which index_enter has inserted, to be rows with values.
/// index_find sees them only after index_finish_rows, or once a later batch ends its step.
HCTR_OP(void index_add_rows(Context&, HashIndex, uint32_t count))
/// index_find now sees rows 1 to `rows`.
HCTR_OP(void index_finish_rows(Context&, HashIndex, uint32_t rows))

/// Ends a step: index_find now sees the rows that its batch closed with.
HCTR_OP(void index_finish_step(Context&, HashIndex, const uint32_t* rows_after))

}  // namespace hctr::ops
