// Forward of an embedding: the vectors of each bag made into one, or put side by side.
#pragma once

#include "device/op.h"
#include "ops/key_batch.h"
#include "ops/row_memory.h"

namespace hctr::ops {

/// y[b, s, :] = weight * sum over the keys p of bag (s, b) of table[rows[p], :]; row 0 contributes nothing; weight is
/// 1, or with mean and sqrtn 1 / n and 1 / sqrt(n), n the number of the bag's keys, those without a row included. An
/// empty bag gives 0. With none y[b, i, :] = table[rows[p], :], p the key that stands at place i, and 0 where none does.
/// Shapes: y [samples, places, dim], row stride at will; table [rows, dim]. Dtypes: y and table f32 f16 bf16, each by itself; sums f32.
HCTR_OP(void pool(Context&, KeyBatch, const int32_t* rows, RowMemory table, Combiner, Tensor y))

/// The same for some of the samples, of those bags that have keys; all else of y is not touched.
HCTR_OP(void pool_samples(Context&, KeyBatch, SampleRange, const int32_t* rows, RowMemory table, Combiner, Tensor y))

}  // namespace hctr::ops
