// Rows that are on every rank, equal bit by bit, because every rank gives them the same update: ranks sum up gradients
// instead of exchanging vectors. See docs/distributed.md.
//
//   prepare    keys ── find ──> rows ── mark ──> marks ── all-reduce ──> rows that some rank's batch has
//   forward    y  <── rows, as in a table on one rank
//   backward   dy ── sum by row ──> [rows, dim] ── all-reduce ──> optimizer, once for each of those rows
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "device/arena.h"
#include "embedding/table.h"

namespace hctr {

/// Either all rows of a table with direct keys, or of some of its slots, or those of keys that are set between steps
/// (TableSpec::fixed_keys): until then none, and at most row_limit. Calls of steps are collective.
class ReplicatedRows {
 public:
  ReplicatedRows(Runtime&, Communicator&, const TableSpec&, int ring_size);

  /// The calls of EmbeddingTable, of this rank's samples; other keys than its own it leaves alone.
  void prepare(Context&, int buffer, Tensor keys, Tensor offsets);
  void forward(Context& ctx, int buffer, Tensor y, const ops::OwnerVectors* owners = nullptr) {
    table_.pool(ctx, table_.prepared(buffer), owners, y);
  }
  /// Of each row, over the samples of this rank and then over the ranks; once that is done, update() may run. On any
  /// stream.
  void sum_gradients(Context&, int buffer, Tensor dy);
  void update(Context&, int buffer);
  void lookup(Context& ctx, Tensor keys, Tensor offsets, Tensor y) { lookup(ctx, find(ctx, keys, offsets), y); }

  // With fixed keys, or those of some slots, other keys add nothing to y: whoever has their rows adds those, or where
  // `owners` are given writes those vectors of y, which then are not touched here.

  /// Which keys of the prepared batch have a row here, in the order of keys; 0 for the others.
  const int32_t* rows_of(int buffer) const { return table_.prepared(buffer).rows; }
  /// For evaluation. Keys that no step has brought are as unknown as in any table.
  EmbeddingTable::Batch find(Context&, Tensor keys, Tensor offsets);
  void lookup(Context& ctx, const EmbeddingTable::Batch& batch, Tensor y, const ops::OwnerVectors* owners = nullptr) {
    table_.pool(ctx, batch, owners, y);
  }

  /// The keys, sorted by (slot, key); slots are empty where rows belong to keys alone. `seen`: rows count as having
  /// come. Once, with nothing queued.
  void assign_rows(std::vector<int64_t> keys, std::vector<int32_t> slots, bool seen);
  bool has_rows() const { return !keys_.empty(); }
  bool has(int64_t key, int32_t slot) const { return index_of(key, slot).has_value(); }
  /// Rows that have come. Waits for queued steps.
  int64_t rows_seen();
  /// Overwrites those rows of the block that are held, the same on every rank; they have come.
  void import_rows(const RowBlock&);
  /// Rows that have come, with their states. Waits for queued steps.
  void export_rows(const std::function<void(const RowBlock&)>& sink);
  EmbeddingTable& table() { return table_; }
  const TableSpec& spec() const { return table_.spec(); }

 private:
  /// Of the i-th key in the order of hold(); none where it is not held.
  std::optional<size_t> index_of(int64_t key, int32_t slot) const;
  std::vector<int32_t> seen();
  /// Those that there are now, at least one: keys that are not held yet are neither summed nor shared.
  int64_t rows_now() const;
  /// The part of memory for all rows that there may be that rows_now() need: a line for each, and one for none.
  Tensor of_rows(size_t ticket) const;

  Runtime& runtime_;
  Communicator& comm_;
  EmbeddingTable table_;
  int64_t rows_;  // that there may be
  std::vector<int64_t> keys_;
  std::vector<int32_t> slots_;

  struct Step {    // of a ring slot: what all ranks' batches touch
    size_t marks;  // ticket
    ops::RowGroups touched;
  };
  Arena arena_;
  std::vector<Step> steps_;
  size_t sums_ = 0, seen_ = 0, scratch_ = 0;
};

}  // namespace hctr
