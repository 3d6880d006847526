// Vectors between the ranks that own their rows and the ranks that own their samples: the parts of all owners as the output of an
// embedding, and its gradient as a part for each owner.
#pragma once

#include "device/op.h"
#include "ops/key_blocks.h"

namespace hctr::ops {

/// Owner r's part is [samples, owners[r].count, dim], and the parts follow each other, in the type that they travel in.
///
/// Forward, every owner sends its part: the sums of those keys of each vector that it has. Backward, a part goes to every owner; where
/// each owner has every column they are one and the same, that of owner 0.
struct VectorBlocks {
  int64_t columns = 0;         // of the batch
  int64_t owners_of_each = 1;  // ranks that have a column: 1, or all
  const BlockColumn* block_columns = nullptr;
  const OwnerBlock* owners = nullptr;
  const int32_t* first = nullptr;  // [columns] the place of a column among block_columns at its first owner; at its next ones `columns` further each

  /// Where the vector of block column c and sample b starts.
  HCTR_HD int64_t element(int32_t c, int64_t b, int64_t samples, int64_t dim) const {
    const OwnerBlock block = owners[block_columns[c].owner];
    return (block.first * samples + b * block.count + (c - block.first)) * dim;
  }
};

/// y[b, c, :] = weight * the sum over the owners of column c, in their order, of their vectors (b, c); the weight is that of the
/// combiner (ops::pool), by the bags of this rank's `batch`.
/// Shapes: parts [sum of all parts], y [samples, columns, dim], row stride at will. Dtypes: parts and y f32 f16 bf16, each by itself; sums f32.
HCTR_OP(void join_vectors(Context&, KeyBatch batch, VectorBlocks, Combiner, Tensor parts, Tensor y))

/// The way back: every part gets weight * dy[b, c, :]. Shapes: parts [samples * columns * dim], dy as y. Dtypes likewise.
HCTR_OP(void split_gradients(Context&, KeyBatch batch, VectorBlocks, Combiner, Tensor dy, Tensor parts))

}  // namespace hctr::ops
