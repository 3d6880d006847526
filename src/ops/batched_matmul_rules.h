// Addresses of the matrix elements of ops/batched_matmul.h, shared by every device.
#pragma once

#include "ops/batched_matmul.h"

namespace hctr::ops {

/// op(matrix) number i: element (r, c) at data[r * row + c * column].
template <class T>
struct MatrixAt {
  T* data;
  int64_t row, column;
};

template <class T>
struct MatrixBatch {
  T* data;
  int64_t inner, outer_stride, inner_stride, row, column;
  HCTR_HD MatrixAt<T> operator[](int64_t i) const {
    return {data + i / inner * outer_stride + i % inner * inner_stride, row, column};
  }
};

template <class T>
MatrixBatch<T> matrix_batch(const Matrices& m, Transpose how) {
  const bool no = how == Transpose::no;
  return {m.tensor.data<T>(),   m.inner, m.tensor.row_stride(), m.inner_stride, no ? m.row_stride : 1,
          no ? 1 : m.row_stride};
}

}  // namespace hctr::ops
