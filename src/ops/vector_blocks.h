// Vectors between the ranks that own their rows and the ranks that own their samples: the parts of all owners as the output of an
// embedding, and its gradient as a part for each owner.
#pragma once

#include "device/op.h"
#include "ops/key_blocks.h"

namespace hctr::ops {

/// Owner r's part is [samples, owners[r].count, dim], and the parts follow each other, in the type that they travel in.
///
/// Forward, every owner sends its part: the sums of those keys of each vector that it has. Backward, a part goes to every owner; where
/// each owner has every column they are one and the same, and that of owner 0 alone need be listed here.
struct VectorBlocks {
  int64_t columns = 0;  // of the batch, times `pieces`
  int64_t places = 0;   // block columns that are listed
  const BlockColumn* block_columns = nullptr;
  const OwnerBlock* owners = nullptr;
  const int32_t* first = nullptr;  // [columns + 1] where the list of each column begins
  const int32_t* place = nullptr;  // [places] numbers of block columns: those of one column in the order of their owners
  int64_t pieces = 1;              // that vectors are cut into, each a column with `dim` elements: piece p of the batch's column c is c * pieces + p

  /// Where the vector of block column c and sample b starts.
  HCTR_HD int64_t element(int32_t c, int64_t b, int64_t samples, int64_t dim) const {
    const OwnerBlock block = owners[block_columns[c].owner];
    return (block.first * samples + b * block.count + (c - block.first)) * dim;
  }
};

/// y[b, c, :] = weight * the sum over the owners of column c, in their order, of their vectors (b, c); the weight is that of the
/// combiner (ops::pool), by the bags of this rank's `batch`.
/// Shapes: parts [places * samples * dim], y [samples, columns / pieces, dim * pieces], row stride at will. Dtypes: parts and y f32 f16 bf16, each by
/// itself; sums f32.
HCTR_OP(void join_vectors(Context&, KeyBatch batch, VectorBlocks, Combiner, Tensor parts, Tensor y))

/// The way back: the part of every listed owner of column c gets weight * dy[b, c, :]. Shapes and dtypes as join_vectors.
HCTR_OP(void split_gradients(Context&, KeyBatch batch, VectorBlocks, Combiner, Tensor dy, Tensor parts))

}  // namespace hctr::ops
