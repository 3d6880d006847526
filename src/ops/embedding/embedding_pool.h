// The forward pass of an embedding: combines the rows of a bag into one vector, or copies one row per key.
#pragma once

#include "core/device/op.h"
#include "ops/embedding/key_batch.h"
#include "ops/embedding/owner_vectors.h"
#include "ops/embedding/rank_memory.h"
#include "ops/embedding/row_elements.h"

namespace hctr::ops {

/// y[b, s, :] = weight * sum of table[rows[p], :] over the keys p of bag (s, b). Row 0 contributes nothing. The weight
/// is 1 for sum, 1 / n for mean, and 1 / sqrt(n) for sqrtn; n counts all keys of the bag, including keys without a row.
/// An empty bag gives 0. With Combiner::none, y[b, i, :] = table[rows[p], :] for the key p of column i, and 0 if the
/// column has no key. Shapes: y [samples, columns, dim], any row stride; table [rows, dim]. Dtypes: y and table f32 f16
/// bf16, independently; sums f32.
HCTR_OP(void pool(Context&, KeyBatch, const int32_t* rows, RowMemory table, Combiner, Tensor y))

/// Like pool(), but skips vectors for which some other owner has a key.
HCTR_OP(void pool_others(Context&, KeyBatch, const int32_t* rows, RowMemory table, Combiner, OwnerVectors owners,
                         Tensor y))

/// The output addresses of a batch that contains the samples of all ranks, in rank order: one shard per rank.
struct SampleShards {
  RankMemory memory{};
  // [ranks] address of each rank's first vector, on the device; null: skips the rank
  std::byte* const* shard = nullptr;
  int64_t ranks = 1, samples = 0;    // samples: number per rank
  int64_t row_stride = 0;            // elements between the vectors of adjacent samples
  const int32_t* targets = nullptr;  // [columns] vector index in the sample for each column; null: 0, 1, 2, ...
  int64_t first = 0;                 // the rank whose shard is written first
};

/// Like pool(), but writes vector (column, sample b of rank r) to shard[r] + b * row_stride + targets[column] * dim.
/// Skips the vectors of empty bags.
HCTR_OP(void pool_shards(Context&, KeyBatch, const int32_t* rows, RowMemory table, Combiner, int64_t dim, SampleShards))

}  // namespace hctr::ops
