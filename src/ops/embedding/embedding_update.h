// The backward pass of an embedding, fused with its optimizer: sums the gradients per row and updates each row once.
#pragma once

#include "core/device/op.h"
#include "ops/embedding/embedding_group.h"
#include "ops/embedding/embedding_rows.h"

namespace hctr::ops {

/// Sums the gradients of long runs; call before update_rows() or sum_row_gradients(). The gradient of a row is g = the
/// sum of weight(bag) * dy[bag] over its occurrences, in the order that kPiece defines. For a long run, writes g to
/// piece_sums[first piece of the run, :]. Shapes: dy [samples, columns, dim], any row stride; piece_sums
/// [RowGroups::most_pieces, dim], overwritten. Dtypes: dy f32 f16 bf16; sums f32.
HCTR_OP(void sum_long_runs(Context&, KeyBatch, RowGroups, Combiner, Tensor dy, float* piece_sums))

/// Updates every row of the batch: divides g by the loss scale and applies the rule once (row_rules.h; with
/// data.last_step the lazy rule). With data.touched, sets the row's flag. Does nothing if the step is skipped. Shapes:
/// as in sum_long_runs(). `piece_sums` is the output of sum_long_runs(), unused if no run is long. Dtypes: dy, vectors
/// and states f32 f16 bf16, independently; all arithmetic f32. Two-byte elements are rounded stochastically
/// (rounding.h). Needs ctx.state().
HCTR_OP(void update_rows(Context&, const Optimizer&, KeyBatch, RowGroups, Combiner, Tensor dy, const float* piece_sums,
                         RowData data))

/// Computes only the sums, for rows that are replicated on several ranks: sums[row, :] = g for every row of the batch,
/// not divided by the loss scale. Leaves other rows of `sums` unchanged. Does nothing if the step is skipped. Shapes:
/// sums [rows, dim], dense; row 0 is not a row. Dtypes: sums f32; dy as in sum_long_runs().
HCTR_OP(void sum_row_gradients(Context&, KeyBatch, RowGroups, Combiner, Tensor dy, const float* piece_sums,
                               Tensor sums))

/// Applies the rule with g = 0 to the rows 1 to *rows that update_rows() has not touched, and clears data.touched. Does
/// nothing if the step is skipped. Needs ctx.state().
HCTR_OP(void sweep_rows(Context&, const Optimizer&, const uint32_t* rows, RowData data))

}  // namespace hctr::ops
