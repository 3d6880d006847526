// Forward of an embedding: the vectors of each bag made into one.
#pragma once

#include "device/op.h"
#include "ops/key_batch.h"

namespace hctr::ops {

/// y[b, s, :] = weight * sum over the keys p of bag (s, b) of table[rows[p], :]; row 0 contributes nothing; weight is
/// 1, or with the mean 1 / number of the bag's keys, those without a row included. An empty bag gives 0. Shapes: y
/// [samples, slots, dim], row stride at will; table [rows, dim]. Dtypes: y f32 f16 bf16; table and sums f32.
HCTR_OP(void pool(Context&, KeyBatch, const int32_t* rows, const float* table, Combiner, Tensor y))

}  // namespace hctr::ops
