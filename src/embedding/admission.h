// The gate of a table: which unknown keys of a training batch get a row, and what those without one use.
#pragma once

#include <cstdint>
#include <memory>

#include "device/arena.h"
#include "embedding/row_store.h"
#include "ops/embedding/admission.h"

namespace hctr {

/// Keys that wait for `min_count` are candidates: rows of a store of their own, with no elements. Beyond
/// `max_candidates` those leave that came last in the earliest steps; with `expire_after` those that have not come for
/// so long.
class Admission {
 public:
  Admission(Runtime&, const TableSpec&, int batches_ahead);

  /// As RowStore's, for the candidates.
  void set_steps_before(int64_t steps);
  /// Room for the candidates of one more batch, that of step `step` as marks count. Host, between steps; waits as
  /// RowStore does.
  void reserve_rows(int64_t step);
  /// rows[p] = the row of key p of the batch in `table`: one it had, or one that it gets now, or the shared one, or 0.
  /// On the prepare stream; can be recorded. Needs ctx.state().
  void find_or_admit(Context&, const ops::HashIndex& table, ops::KeyBatch, int32_t* rows);
  /// In lookups, unknown keys have the shared row, once there are keys that used it.
  void share_row(Context&, ops::KeyBatch, int32_t* rows) const;

  /// Closed, no key gets a row, and those without one share row 1. Host, with nothing in flight.
  void close(bool closed);
  bool closed() const { return gate_.closed != 0; }
  bool used_shared_row() const { return gate_.shared_row != 0; }
  /// On the device: occurrences that used the shared row.
  uint64_t* on_shared_row() const { return &device_gate()->on_shared_row; }

  /// Occurrences in training batches so far. Waits for queued steps.
  struct Counts {
    int64_t on_shared_row, without_row, candidates_dropped;
  };
  Counts counts();

 private:
  ops::GateState* device_gate() const { return reinterpret_cast<ops::GateState*>(device_gate_.data()); }
  void allocate(const TableSpec&);

  Runtime& runtime_;
  RowPolicy policy_;
  ops::AdmissionRule rule_;
  std::unique_ptr<RowStore> candidates_;  // none without min_count
  int64_t candidates_dropped_ = 0;
  Buffer device_gate_, all_rows_;
  ops::GateState gate_;  // what the host has written; the counts are the device's
  Arena arena_;
  ops::KeySelection unknown_, admitted_;
  uint8_t* wanted_ = nullptr;
  int32_t *candidate_rows_ = nullptr, *found_ = nullptr;
  uint32_t* candidates_after_ = nullptr;
  std::byte* scratch_ = nullptr;
};

}  // namespace hctr
