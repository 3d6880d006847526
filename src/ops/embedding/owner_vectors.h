// The vectors that are exchanged between the ranks that own rows and the ranks of the samples: forward, the partial
// sums of all owners are joined to the output of an embedding; backward, its gradient is split into a message for each
// owner.
#pragma once

#include <cstddef>

#include "core/device/op.h"
#include "ops/common/loss_scale.h"
#include "ops/embedding/key_batch.h"
#include "ops/embedding/rank_memory.h"

namespace hctr::ops {

/// The address of a column of the batch in the message from or to one of its owners.
struct RemoteColumn {
  std::byte* vector = nullptr;  // sample 0's
  int64_t stride = 0;           // vectors from one sample's to the next one's
  int64_t index = 0;            // index of sample 0's vector in `present`, with the same stride

  template <class P>
  HCTR_HD P* at(int64_t b, int64_t dim) const {
    return reinterpret_cast<P*>(vector) + b * stride * dim;
  }
};

/// The messages of all owners: that of owner r is [samples, its columns, dim], in the exchange dtype.
///
/// Forward, an owner sends for each vector the sum of those keys that it has. Backward, every owner gets a message;
/// where all get the same one, only that is listed here.
struct OwnerVectors {
  RankMemory memory{};
  int64_t columns = 0;                           // columns of the batch, times `pieces`
  const int32_t* first = nullptr;                // [columns + 1] where the remote columns of each column begin
  const RemoteColumn* remote_columns = nullptr;  // remote columns of each column, in the order of its owners
  int64_t pieces = 1;  // pieces per vector, each a column with `dim` elements: piece p of the batch's column c
                       // is c * pieces + p
  const uint8_t* present = nullptr;  // by RemoteColumn::index: 0 if the owner has no key of the vector, which is then
                                     // neither read nor written; null: all are present

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
/// pieces], any row stride. Dtypes: messages and y f32 f16 bf16, independently; sums f32.
HCTR_OP(void join_vectors(Context&, KeyBatch batch, OwnerVectors, Combiner, Tensor y))

/// The same, added to y, which is rounded once more. Vectors of which no owner has a key are not written.
HCTR_OP(void add_joined_vectors(Context&, KeyBatch batch, OwnerVectors, Combiner, Tensor y))

/// For owners that write to y directly: sets vectors of which no owner has a key to 0. The others are not written.
/// Dtype of y: f32 f16 bf16.
HCTR_OP(void clear_unowned(Context&, OwnerVectors, Tensor y))

/// The backward of join_vectors: writes weight * dy[b, c, :] to the message of every listed owner of column c. Also
/// searches all of dy as find_overflow does, if search.found is set. Shapes and dtypes as join_vectors.
HCTR_OP(void split_gradients(Context&, KeyBatch batch, OwnerVectors, Combiner, Tensor dy, OverflowSearch search))

}  // namespace hctr::ops
