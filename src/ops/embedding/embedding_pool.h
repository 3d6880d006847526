// The forward pass of an embedding: the vectors of a bag are combined into one, or stay apart.
#pragma once

#include "core/device/op.h"
#include "ops/embedding/key_batch.h"
#include "ops/embedding/owner_vectors.h"
#include "ops/embedding/rank_memory.h"
#include "ops/embedding/row_elements.h"

namespace hctr::ops {

/// y[b, s, :] = weight * sum over the keys p of bag (s, b) of table[rows[p], :]; row 0 contributes nothing; weight is
/// 1, with mean 1 / n, and with sqrtn 1 / sqrt(n), where n is the number of keys of the bag, including keys without a
/// row. An empty bag gives 0. With Combiner::none y[b, i, :] = table[rows[p], :] for the key p of column i, and 0 if
/// the column has no key. Shapes: y [samples, columns, dim], any row stride; table [rows, dim]. Dtypes: y and table f32
/// f16 bf16, independently; sums f32.
HCTR_OP(void pool(Context&, KeyBatch, const int32_t* rows, RowMemory table, Combiner, Tensor y))

/// The same, but vectors of which some owner has a key are not written.
HCTR_OP(void pool_others(Context&, KeyBatch, const int32_t* rows, RowMemory table, Combiner, OwnerVectors owners,
                         Tensor y))

/// Where the vectors of a batch of the samples of all ranks are written: one shard for the samples of each rank. The
/// batch holds the samples of rank 0, then those of rank 1, and so on.
struct SampleShards {
  RankMemory memory{};
  std::byte* const* shard = nullptr;  // [ranks] the address of the first vector, on the device; null for a rank
                                      // whose vectors are not written
  int64_t ranks = 1, samples = 0;     // samples of each rank
  int64_t row_stride = 0;             // elements from one sample's vectors to the next one's
  const int32_t* targets = nullptr;   // [columns] which vector of its sample each column is; null: 0, 1, 2, ...
  int64_t first = 0;                  // the rank whose shard is written first
};

/// As pool, but vector (column, sample b of rank r) is written to shard[r] + b * row_stride + targets[column] * dim.
/// Vectors of empty bags are not written.
HCTR_OP(void pool_shards(Context&, KeyBatch, const int32_t* rows, RowMemory table, Combiner, int64_t dim, SampleShards))

}  // namespace hctr::ops
