// Vectors between the ranks that own their rows and the ranks that own their samples: the parts of all owners as the
// output of an embedding, and its gradient as a part for each owner.
#pragma once

#include <cstddef>

#include "device/op.h"
#include "ops/embedding/key_batch.h"
#include "ops/embedding/rank_memory.h"
#include "ops/loss_scale.h"

namespace hctr::ops {

/// Where a column of the batch stands at one of its owners.
struct RemoteColumn {
  std::byte* vector = nullptr;  // sample 0's
  int64_t stride = 0;           // vectors from one sample's to the next one's
  int64_t index = 0;            // of sample 0's vector in `present`, where those of a column are as far apart

  template <class P>
  HCTR_HD P* at(int64_t b, int64_t dim) const {
    return reinterpret_cast<P*>(vector) + b * stride * dim;
  }
};

/// Owner r's part is [samples, its columns, dim], in the type that vectors travel in.
///
/// Forward, every owner sends its part: the sums of those keys of each vector that it has. Backward, a part goes to
/// every owner; where one goes to all, it alone is listed here.
struct VectorBlocks {
  RankMemory memory{};
  int64_t columns = 0;                           // of the batch, times `pieces`
  const int32_t* first = nullptr;                // [columns + 1] where the list of each column begins
  const RemoteColumn* remote_columns = nullptr;  // those of one column in the order of their owners
  int64_t pieces = 1;  // that vectors are cut into, each a column with `dim` elements: piece p of the batch's column c
                       // is c * pieces + p
  const uint8_t* present = nullptr;  // by number: 0 where the owner has no key of the vector, which is neither read nor
                                     // written; null: it may have

  HCTR_HD bool is_there(const RemoteColumn& at, int64_t b) const {
    return !present || present[at.index + b * at.stride] != 0;
  }
  /// Whether an owner has a key of the vector of column c of the batch.
  HCTR_HD bool any_owner(int64_t c, int64_t b) const {
    for (int32_t p = first[c * pieces]; p < first[c * pieces + 1]; ++p)
      if (is_there(remote_columns[p], b)) return true;
    return false;
  }
};

/// y[b, c, :] = weight * the sum over the owners of column c, in their order, of their vectors (b, c); the weight is
/// that of the combiner (ops::pool), by the bags of this rank's `batch`. Shapes: y [samples, columns / pieces, dim *
/// pieces], row stride at will. Dtypes: parts and y f32 f16 bf16, each by itself; sums f32.
HCTR_OP(void join_vectors(Context&, KeyBatch batch, VectorBlocks, Combiner, Tensor y))

/// The same added to what y holds, which is rounded once more; vectors that no owner has a key of are not touched.
HCTR_OP(void add_joined_vectors(Context&, KeyBatch batch, VectorBlocks, Combiner, Tensor y))

/// Where owners write to y themselves: vectors that none has a key of become 0, the others are not touched. Dtype of y:
/// f32 f16 bf16.
HCTR_OP(void clear_unowned(Context&, VectorBlocks, Tensor y))

/// The way back: the part of every listed owner of column c gets weight * dy[b, c, :]. All of dy is searched as
/// find_overflow does, if `search` says so. Shapes and dtypes as join_vectors.
HCTR_OP(void split_gradients(Context&, KeyBatch batch, VectorBlocks, Combiner, Tensor dy, OverflowSearch search))

}  // namespace hctr::ops
