// Replicated rows: every rank has bitwise equal copies, because every rank applies the same update. Ranks all-reduce
// gradients instead of exchanging vectors. See docs/distributed.md.
//
//   prepare    keys ── find ──> rows ── mark ──> marks ── all-reduce ──> rows in the batch of any rank
//   forward    y  <── rows, as in a table on one rank
//   backward   dy ── sum by row ──> [rows, dim] ── all-reduce ──> optimizer, once for each of those rows
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/comm/communicator.h"
#include "core/device/arena.h"
#include "engine/table/table.h"

namespace hctr {

/// The replicated rows are one of three sets. 1: all rows of a table with direct keys. 2: the rows of some slots of
/// such a table. 3: the rows of keys that are assigned between steps (TableSpec::fixed_keys), initially none and at
/// most row_limit. The calls of a step are collective.
class ReplicatedRows {
 public:
  ReplicatedRows(Runtime&, Communicator&, const TableSpec&, int ring_size);

  /// These calls have the meaning of EmbeddingTable's calls, for the samples of this rank. They skip keys without a
  /// replicated row.
  void prepare(Context&, int buffer, Tensor keys, Tensor offsets);
  void forward(Context& ctx, int buffer, Tensor y, const ops::OwnerVectors* owners = nullptr) {
    table_.pool(ctx, table_.prepared(buffer), owners, y);
  }
  /// Sums the gradients of each row over the samples of this rank, then over the ranks. Call update() afterwards. Any
  /// stream is allowed.
  void sum_gradients(Context&, int buffer, Tensor dy);
  void update(Context&, int buffer);
  void lookup(Context& ctx, Tensor keys, Tensor offsets, Tensor y) { lookup(ctx, find(ctx, keys, offsets), y); }

  // With fixed keys, or with the keys of some slots only, forward() and lookup() skip all other keys, because the
  // vectors of these keys come from the owners. With `owners`, the owners write some vectors of y directly, and pool()
  // does not write these vectors.

  /// The replicated row of each key of the prepared batch; 0 if the key has no replicated row.
  const int32_t* rows_of(int buffer) const { return table_.prepared(buffer).rows; }
  /// Lookup for evaluation. Keys that no step has seen are unknown, as in any table.
  EmbeddingTable::Batch find(Context&, Tensor keys, Tensor offsets);
  void lookup(Context& ctx, const EmbeddingTable::Batch& batch, Tensor y, const ops::OwnerVectors* owners = nullptr) {
    table_.pool(ctx, batch, owners, y);
  }

  /// Assigns rows to these keys, sorted by (slot, key). `slots` is empty if rows do not depend on slots. `seen`:
  /// whether the keys are treated as having occurred. Called once, when no work is queued.
  void assign_rows(std::vector<int64_t> keys, std::vector<int32_t> slots, bool seen);
  bool has_rows() const { return !keys_.empty(); }
  bool has(int64_t key, int32_t slot) const { return index_of(key, slot).has_value(); }
  /// Returns for each key whether find() would return a row.
  std::vector<uint8_t> have_rows(std::span<const SlotKey> keys);
  /// The number of rows whose key has occurred. Waits for queued steps.
  int64_t rows_seen();
  /// Overwrites the replicated rows that `block` contains; `block` must be the same on every rank. From then on the
  /// keys of these rows count as having occurred.
  void import_rows(const RowBlock&);
  /// Passes to `sink` every row whose key has occurred, with its states. Waits for queued steps.
  void export_rows(const std::function<void(const RowBlock&)>& sink, bool only_changed = false);
  // For checkpoints. No work may be queued.
  void save_state(StateWriter);
  void load_state(const StateReader&);
  struct Keys {
    std::vector<int64_t> keys;
    std::vector<int32_t> slots;
  };
  /// The keys to which a checkpoint assigns rows. Errors: Error(data) if there are more keys than reserved rows, if
  /// slots are missing, or if the keys are not sorted as in assign_rows().
  Keys saved_keys(const StateReader&) const;
  /// For each row of a checkpoint, from row 0 on: whether its key has occurred. Empty: all keys have occurred.
  static std::vector<int32_t> saved_seen(const StateReader&);

  EmbeddingTable& table() { return table_; }
  const TableSpec& spec() const { return table_.spec(); }

 private:
  /// The index of a key in the order of assign_rows(); nullopt if the key has no row.
  std::optional<size_t> index_of(int64_t key, int32_t slot) const;
  /// Errors: Error(data) if the checkpoint's table does not have the rows of `Keys`, or if the keys of this run differ.
  void expect_rows_of(const Keys&, const StateReader&) const;
  std::vector<int32_t> seen();
  /// The current number of rows, at least 1. All-reduces skip unassigned rows.
  int64_t rows_now() const;
  /// Rows 0 to rows_now() of an array with capacity for all rows; row 0 means "no row".
  Tensor of_rows(size_t ticket) const;

  Runtime& runtime_;
  Communicator& comm_;
  EmbeddingTable table_;
  int64_t rows_;  // capacity
  std::vector<int64_t> keys_;
  std::vector<int32_t> slots_;

  struct Step {    // per buffer of the ring: the rows that the batches of all ranks touch
    size_t marks;  // ticket
    ops::RowGroups touched;
  };
  Arena arena_;
  std::vector<Step> steps_;
  size_t sums_ = 0, seen_ = 0, scratch_ = 0;
};

}  // namespace hctr
