// Access statistics of rows: the step of the last batch that had them, and how many occurrences they had. The eviction
// policies use them. Also marks of the rows that batches may have changed, for checkpoints and deltas of models.
#pragma once

#include "core/device/op.h"
#include "ops/embedding/embedding_group.h"

namespace hctr::ops {

/// The mark of a changed row: one bit for each consumer, which clears its own.
inline constexpr uint8_t kRowChanged = 3, kChangedSinceCheckpoint = 1, kChangedSinceModel = 2;

/// Null arrays are not recorded.
struct AccessStats {
  uint32_t* last_seen = nullptr;    // [rows] the step, see step_of(), of the last batch that had the row
  uint32_t* occurrences = nullptr;  // [rows] in all batches; saturates
  uint8_t* changed = nullptr;       // [rows] set to kRowChanged

  const uint32_t* steps_before = nullptr;  // device memory: steps before this run, modulo 2^32; null: none

  bool any() const { return last_seen || occurrences || changed; }
  /// The number that a step is recorded as.
  HCTR_HD uint32_t step_of(const StepState& state) const {
    return static_cast<uint32_t>(state.step) + (steps_before ? *steps_before : 0);
  }
};

/// Records the rows of a batch, grouped: each row has one writer. Needs ctx.state().
HCTR_OP(void record_access(Context&, RowGroups, int64_t key_capacity, AccessStats))

/// The same for rows in the order of the keys, by atomic additions of integers. A count must be read and reset before
/// it has grown by 2^31 occurrences. Needs ctx.state().
HCTR_OP(void record_access_by_key(Context&, KeyBatch, const int32_t* rows, AccessStats))

}  // namespace hctr::ops
