// What is noted of rows as batches bring them: when they came last, and how often. By this it is told which rows a table can spare.
#pragma once

#include "device/op.h"
#include "ops/embedding_group.h"

namespace hctr::ops {

/// Null: not noted.
struct RowMarks {
  uint32_t* last_seen = nullptr;    // [rows] StepState::step of the last batch that had the row
  uint32_t* occurrences = nullptr;  // [rows] in all batches; stays at the largest number when that is reached

  bool any() const { return last_seen || occurrences; }
};

/// Notes the rows of a batch, grouped: one writer for each row. Needs ctx.state().
HCTR_OP(void mark_rows(Context&, RowGroups, int64_t key_capacity, RowMarks))

/// The same for the rows of a batch in the order of its keys, with atomic additions of integers. Fewer than 2^31 occurrences are
/// noted before a count is read and set back. Needs ctx.state().
HCTR_OP(void count_rows(Context&, KeyBatch, const int32_t* rows, RowMarks))

}  // namespace hctr::ops
