// Access statistics of rows, which eviction policies read: for each row, the step of the last batch that contained the
// row, and the row's number of occurrences. Also dirty flags of rows, for incremental checkpoints and model deltas.
#pragma once

#include "core/device/op.h"
#include "ops/embedding/embedding_group.h"

namespace hctr::ops {

/// Dirty flags of a row: one bit per consumer. Each consumer clears its own bit.
inline constexpr uint8_t kRowChanged = 3, kChangedSinceCheckpoint = 1, kChangedSinceModel = 2;

/// Arrays of access statistics. A null array is not recorded.
struct AccessStats {
  uint32_t* last_seen = nullptr;    // [rows] step_of() of the last batch that contained the row
  uint32_t* occurrences = nullptr;  // [rows] occurrences over all batches; saturates
  uint8_t* changed = nullptr;       // [rows] set to kRowChanged if a batch contains the row

  const uint32_t* steps_before = nullptr;  // device memory: steps before this run, modulo 2^32; null: 0

  bool any() const { return last_seen || occurrences || changed; }
  /// The step number to record, counted over all runs, modulo 2^32.
  HCTR_HD uint32_t step_of(const StepState& state) const {
    return static_cast<uint32_t>(state.step) + (steps_before ? *steps_before : 0);
  }

  /// Records the batch with number `step` for a row; several threads may write equal values.
  HCTR_HD void mark(int32_t row, uint32_t step) const {
    if (last_seen) last_seen[row] = step;
    if (changed) changed[row] = kRowChanged;
  }
  /// Records a run of equal rows of a grouped batch, as the only writer of this row.
  HCTR_HD void record_run(const RowGroups& groups, int64_t run, int64_t key_capacity, uint32_t step) const {
    const int32_t first = groups.run_begin[run], row = groups.rows[first];
    mark(row, step);
    if (!occurrences) return;
    const auto more = static_cast<uint32_t>(groups.run_end(run, key_capacity) - first);
    const uint32_t capacity = 0xffffffffu - occurrences[row];
    occurrences[row] += more < capacity ? more : capacity;
  }
};

/// Records the rows of a grouped batch; each row has one writer. Needs ctx.state().
HCTR_OP(void record_access(Context&, RowGroups, int64_t key_capacity, AccessStats))

/// Records rows[p] of each key p of an ungrouped batch, with integer atomics. The atomics do not saturate, so an
/// occurrence count must be read and reset before it grows by 2^31. Needs ctx.state().
HCTR_OP(void record_access_by_key(Context&, KeyBatch, const int32_t* rows, AccessStats))

}  // namespace hctr::ops
