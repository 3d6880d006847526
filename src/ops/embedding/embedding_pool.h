// Forward of an embedding: the vectors of each bag made into one, or put side by side.
#pragma once

#include "device/op.h"
#include "ops/embedding/key_batch.h"
#include "ops/embedding/rank_memory.h"
#include "ops/embedding/row_memory.h"
#include "ops/embedding/vector_blocks.h"

namespace hctr::ops {

/// y[b, s, :] = weight * sum over the keys p of bag (s, b) of table[rows[p], :]; row 0 contributes nothing; weight is
/// 1, or with mean and sqrtn 1 / n and 1 / sqrt(n), n the number of the bag's keys, those without a row included. An
/// empty bag gives 0. With none y[b, i, :] = table[rows[p], :], p the key that stands at place i, and 0 where none
/// does. Shapes: y [samples, places, dim], row stride at will; table [rows, dim]. Dtypes: y and table f32 f16 bf16,
/// each by itself; sums f32.
HCTR_OP(void pool(Context&, KeyBatch, const int32_t* rows, RowMemory table, Combiner, Tensor y))

/// The same, but vectors that an owner has a key of are not touched.
HCTR_OP(void pool_others(Context&, KeyBatch, const int32_t* rows, RowMemory table, Combiner, VectorBlocks owners,
                         Tensor y))

/// Where vectors go that a batch of the samples of all ranks makes, each rank's samples one behind the other: a part
/// for each rank.
struct SampleParts {
  RankMemory memory{};
  std::byte* const* part = nullptr;  // [ranks] where the first vector would be, on the device
  int64_t ranks = 1, samples = 0;    // of each rank
  int64_t row_stride = 0;            // elements from one sample's vectors to the next one's
  const int32_t* columns = nullptr;  // [places] which vector of a sample each place makes; null: 0, 1, 2, ...
  int64_t first = 0;                 // the rank whose part is begun with
};

/// Those parts: as pool, with part[r] + b * row_stride + column * dim in place of y[b, place, :], for sample b of rank
/// r. Vectors of empty bags are not touched.
HCTR_OP(void pool_parts(Context&, KeyBatch, const int32_t* rows, RowMemory table, Combiner, int64_t dim, SampleParts))

}  // namespace hctr::ops
