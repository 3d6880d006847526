// Batched GEMMs of small matrices.
#pragma once

#include "ops/gemm/linear.h"

namespace hctr::ops {

/// Matrices within a tensor: each row of the tensor has `inner` matrices, `inner_stride` elements apart. A matrix has
/// `rows` rows of `columns` elements, `row_stride` elements apart.
struct Matrices {
  Tensor tensor;
  int64_t inner, inner_stride, rows, columns, row_stride;

  /// The matrices of a tensor [batch, rows, columns] or [batch, inner, rows, columns].
  static Matrices of(Tensor);
  /// The matrices of a tensor [batch, rows, heads * columns]: one matrix per head.
  static Matrices of_heads(Tensor, int64_t heads);
};

/// c = scale * op(a) op(b) for each matrix, accumulated in f32. Overwrites c. Aliasing: c must not be a or b. Shapes:
/// equal numbers of matrices; op(a) [m, k], op(b) [k, n], c [m, n]. Dtypes: all equal, f32 f16 bf16.
HCTR_OP(void batched_matmul(Context&, Matrices a, Transpose of_a, Matrices b, Transpose of_b, float scale, Matrices c))

}  // namespace hctr::ops
