// What is noted of rows as batches bring them: when they came last, and how often. By this it is told which rows a
// table can spare.
#pragma once

#include "device/op.h"
#include "ops/embedding/embedding_group.h"

namespace hctr::ops {

/// Null: not noted.
struct RowMarks {
  uint32_t* last_seen = nullptr;    // [rows] the step, see step_of(), of the last batch that had the row
  uint32_t* occurrences = nullptr;  // [rows] in all batches; stays at the largest number when that is reached

  const uint32_t* steps_before =
      nullptr;  // on the device: steps that were marked before this run's, modulo 2^32; null: none

  bool any() const { return last_seen || occurrences; }
  /// The number that steps are marked by.
  HCTR_HD uint32_t step_of(const StepState& state) const {
    return static_cast<uint32_t>(state.step) + (steps_before ? *steps_before : 0);
  }
};

/// Notes the rows of a batch, grouped: one writer for each row. Needs ctx.state().
HCTR_OP(void mark_rows(Context&, RowGroups, int64_t key_capacity, RowMarks))

/// The same for the rows of a batch in the order of its keys, with atomic additions of integers. Fewer than 2^31
/// occurrences are noted before a count is read and set back. Needs ctx.state().
HCTR_OP(void count_rows(Context&, KeyBatch, const int32_t* rows, RowMarks))

}  // namespace hctr::ops
