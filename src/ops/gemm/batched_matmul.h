// GEMMs of many small matrices.
#pragma once

#include "ops/gemm/linear.h"

namespace hctr::ops {

/// Matrices inside a tensor: `inner` of them in each of its rows, `inner_stride` elements apart; each has `rows` rows
/// of `columns` elements, `row_stride` apart.
struct Matrices {
  Tensor tensor;
  int64_t inner, inner_stride, rows, columns, row_stride;

  /// Those of a tensor [batch, rows, columns] or [batch, inner, rows, columns].
  static Matrices of(Tensor);
  /// Those of a tensor [batch, rows, heads * columns]: one for each head.
  static Matrices of_heads(Tensor, int64_t heads);
};

/// c = scale * op(a) op(b) for each matrix, sums kept in f32. Overwrites c. Aliasing: c is neither a nor b.
/// Shapes: as many matrices in each; op(a) [m, k], op(b) [k, n], c [m, n]. Dtypes: all alike, f32 f16 bf16.
HCTR_OP(void batched_matmul(Context&, Matrices a, Transpose of_a, Matrices b, Transpose of_b, float scale, Matrices c))

}  // namespace hctr::ops
