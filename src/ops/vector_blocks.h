// Vectors between the ranks that own their rows and the ranks that own their samples: the parts of all owners as the output of an
// embedding, and its gradient as a part for each owner.
#pragma once

#include <cstddef>

#include "device/op.h"
#include "ops/key_batch.h"
#include "ops/loss_scale.h"

namespace hctr::ops {

/// Where a column of the batch stands at one of its owners: sample b's vector is number first + b * step of all vectors in the parts.
struct PartPlace {
  int64_t first, step;
  HCTR_HD int64_t vector(int64_t b) const { return first + b * step; }
};

/// Owner r's part is [samples, its columns, dim], and the parts follow each other, in the type that they travel in.
///
/// Forward, every owner sends its part: the sums of those keys of each vector that it has. Backward, a part goes to every owner; where
/// each owner has every column they are one and the same, and that of owner 0 alone need be listed here.
struct VectorBlocks {
  int64_t columns = 0;                // of the batch, times `pieces`
  int64_t places = 0;                 // that are listed
  const int32_t* first = nullptr;     // [columns + 1] where the list of each column begins
  const PartPlace* place = nullptr;   // [places] those of one column in the order of their owners
  int64_t pieces = 1;                 // that vectors are cut into, each a column with `dim` elements: piece p of the batch's column c is c * pieces + p
  const uint8_t* present = nullptr;   // [all vectors in the parts] 0: the owner has no key of this vector, which is neither read nor written; null: it may have

  int64_t own_begin = 0, own_end = 0;  // vectors of the parts that lie one behind the other in `own`, of the parts' type, instead: what a rank has for itself
  std::byte* own = nullptr;

  HCTR_HD bool is_there(int64_t vector) const { return !present || present[vector] != 0; }
  template <class P>
  HCTR_HD P* at(P* parts, int64_t vector, int64_t dim) const {
    return vector < own_begin || vector >= own_end ? parts + vector * dim : reinterpret_cast<P*>(own) + (vector - own_begin) * dim;
  }
};

/// y[b, c, :] = weight * the sum over the owners of column c, in their order, of their vectors (b, c); the weight is that of the
/// combiner (ops::pool), by the bags of this rank's `batch`.
/// Shapes: parts [places * samples * dim], y [samples, columns / pieces, dim * pieces], row stride at will. Dtypes: parts and y f32 f16 bf16, each by
/// itself; sums f32.
HCTR_OP(void join_vectors(Context&, KeyBatch batch, VectorBlocks, Combiner, Tensor parts, Tensor y))

/// The same added to what y holds, which is rounded once more; vectors that no owner has a key of are not touched.
HCTR_OP(void add_joined_vectors(Context&, KeyBatch batch, VectorBlocks, Combiner, Tensor parts, Tensor y))

/// The way back: the part of every listed owner of column c gets weight * dy[b, c, :]. All of dy is searched as find_overflow does, if `search` says so.
/// Shapes and dtypes as join_vectors.
HCTR_OP(void split_gradients(Context&, KeyBatch batch, VectorBlocks, Combiner, Tensor dy, Tensor parts, OverflowSearch search))

}  // namespace hctr::ops
