// The vectors exchanged between the ranks that own rows and the ranks that own samples. Forward, the partial sums of
// all owners are joined to the output of an embedding. Backward, the gradient of the output is split into one message
// per owner.
#pragma once

#include <cstddef>

#include "core/device/op.h"
#include "ops/common/loss_scale.h"
#include "ops/embedding/key_batch.h"
#include "ops/embedding/rank_memory.h"

namespace hctr::ops {

/// The address of a batch column in the message from or to one owner.
struct RemoteColumn {
  std::byte* vector = nullptr;  // vector of sample 0
  int64_t stride = 0;           // distance between the vectors of adjacent samples, in vectors
  int64_t index = 0;            // index of sample 0 in `present`; `stride` is also the stride in `present`

  template <class P>
  HCTR_HD P* at(int64_t b, int64_t dim) const {
    return reinterpret_cast<P*>(vector) + b * stride * dim;
  }
};

/// The messages of all owners. The message of owner r is [samples, columns of r, dim], in the exchange dtype.
///
/// Forward, an owner sends for each vector the sum of the rows that it owns. Backward, every owner receives a message;
/// if all owners receive the same message, it is listed once.
struct OwnerVectors {
  RankMemory memory{};
  int64_t columns = 0;                           // columns of the batch * pieces
  const int32_t* first = nullptr;                // [columns + 1] offset of each column's remote columns
  const RemoteColumn* remote_columns = nullptr;  // remote columns of each column, ordered by owner
  // pieces per vector, each a column of `dim` elements: piece p of batch column c is column c * pieces + p
  int64_t pieces = 1;
  // [RemoteColumn::index + sample * stride]: 0 if the owner has no key of the vector; the vector is then neither read
  // nor written. Null: all vectors are present.
  const uint8_t* present = nullptr;

  HCTR_HD bool is_there(const RemoteColumn& at, int64_t b) const {
    return !present || present[at.index + b * at.stride] != 0;
  }
  /// Whether any owner has a key of vector (column c, sample b).
  HCTR_HD bool any_owner(int64_t c, int64_t b) const {
    for (int32_t p = first[c * pieces]; p < first[c * pieces + 1]; ++p)
      if (is_there(remote_columns[p], b)) return true;
    return false;
  }
};

/// y[b, c, :] = weight * the sum of vectors (b, c) over the owners of column c, in owner order. The weight is the
/// combiner's weight (ops::pool()) for the bags of this rank's `batch`. Shapes: y [samples, columns / pieces, dim *
/// pieces], any row stride. Dtypes: messages and y f32 f16 bf16, independently; sums f32.
HCTR_OP(void join_vectors(Context&, KeyBatch batch, OwnerVectors, Combiner, Tensor y))

/// Like join_vectors(), but adds the sum to y, which rounds once more. Skips vectors for which no owner has a key.
HCTR_OP(void add_joined_vectors(Context&, KeyBatch batch, OwnerVectors, Combiner, Tensor y))

/// For owners that write to y directly, zeroes the vectors for which no owner has a key. Other vectors are unchanged.
/// Dtype of y: f32 f16 bf16.
HCTR_OP(void clear_unowned(Context&, OwnerVectors, Tensor y))

/// The backward pass of join_vectors(): writes weight * dy[b, c, :] to the message of every listed owner of column c.
/// If search.found is set, checks all of dy for overflow like find_overflow(). Shapes and dtypes as in join_vectors().
HCTR_OP(void split_gradients(Context&, KeyBatch batch, OwnerVectors, Combiner, Tensor dy, OverflowSearch search))

}  // namespace hctr::ops
