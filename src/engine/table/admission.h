// Admission decides which unknown keys of a training batch get a row, and which row all other unknown keys use, if any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/device/arena.h"
#include "engine/table/row_store.h"
#include "ops/embedding/admit_keys.h"

namespace hctr {

/// A key that has not reached `min_count` is a candidate. Candidates are rows without elements in a separate store. If
/// there are more than `max_candidates`, the least recently used candidates are dropped. With `expire_after`,
/// candidates that have not occurred for that many steps are dropped too.
class Admission {
 public:
  Admission(Runtime&, const TableSpec&, int batches_ahead);

  /// Like RowStore::set_steps_before(), for the candidates.
  void set_steps_before(int64_t steps);
  /// Reserves capacity for the candidates of the batch of step `step`. `step` is the step number in the access
  /// statistics. Runs on the host between steps; synchronizes as RowStore does.
  void reserve_rows(int64_t step);
  /// Like EmbeddingTable::reserve_batch(), for every buffer. No work may be queued.
  void reserve_batch(const TableSpec&, int64_t keys);
  bool reserved(int64_t keys) const { return keys <= keys_; }
  void keep_replaced_memory() { keeps_ = true; }
  /// Like EmbeddingTable::reserve_memory(), for the candidates.
  bool reserve_memory();
  /// Sets rows[p] to the row that key p of the batch has in `table`: an existing row, a new row, the shared row, or 0.
  /// Runs on the prepare stream and can be recorded. Requires ctx.state().
  void find_or_admit(Context&, const ops::HashIndex& table, ops::KeyBatch, int32_t* rows);
  /// For lookups, sets the rows of unknown keys to the shared row, if training has used the shared row.
  void share_row(Context&, ops::KeyBatch, int32_t* rows) const;

  /// While admission is closed, no new key gets a row, and all keys without a row share row 1. Runs on the host; no
  /// work may be queued.
  void close(bool closed);
  bool closed() const { return gate_.closed != 0; }
  bool used_shared_row() const { return gate_.shared_row != 0; }
  /// Device counter of the occurrences that used the shared row.
  uint64_t* on_shared_row() const { return &device_gate()->on_shared_row; }

  /// Counts of occurrences in all training batches so far. Waits for queued steps.
  struct Counts {
    int64_t on_shared_row, without_row, candidates_dropped;
  };
  Counts counts();

  // For checkpoints; see EmbeddingTable. No work may be queued.
  void save_state(StateWriter);
  void load_state(const StateReader&);
  /// `full`: whether the table is full.
  void load_state_by_key(const std::vector<StateReader>& of_ranks, int rank,
                         const std::function<bool(int64_t key, int32_t slot)>& owns, bool full);

 private:
  ops::GateState* device_gate() const { return reinterpret_cast<ops::GateState*>(device_gate_.data()); }
  void allocate(const TableSpec&, int64_t keys);
  ops::GateState read_gate();
  void write_gate(const ops::GateState&);

  Runtime& runtime_;
  RowPolicy policy_;
  bool by_slot_;  // whether rows belong to (slot, key)
  ops::AdmissionRule rule_;
  std::unique_ptr<RowStore> candidates_;  // null without min_count
  int64_t candidates_dropped_ = 0;
  Buffer device_gate_, all_rows_;
  ops::GateState gate_;  // the values that the host wrote last; counts on the device may be newer
  Arena arena_;
  int64_t keys_ = 0;  // capacity of a batch in keys
  bool keeps_ = false;
  std::vector<Arena> replaced_;  // see EmbeddingTable::keep_replaced_memory()
  ops::KeySelection unknown_, admitted_;
  uint8_t* wanted_ = nullptr;
  int32_t *candidate_rows_ = nullptr, *found_ = nullptr;
  uint32_t* candidates_after_ = nullptr;
  std::byte* scratch_ = nullptr;
};

}  // namespace hctr
