// Single-threaded small GEMMs, for operators that multiply matrices of each sample.
#pragma once

#include <cstdint>

namespace hctr::ops::cpu {

/// The number of rows of a result is a multiple of kProductRows, the number of columns a multiple of kProductColumns.
inline constexpr int64_t kProductRows = 4, kProductColumns = 16;
inline int64_t padded_to(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/// A row-major matrix whose rows are `stride` elements apart.
template <class T>
struct SmallMatrix {
  T* data;
  int64_t stride;
};

/// c = a b. Shapes: a [rows, depth], b [depth, columns], c [rows, columns]; `rows` is a multiple of kProductRows,
/// `columns` of kProductColumns. Each element is summed in the order of the depth, with two roundings per term, on
/// every processor.
void small_product(SmallMatrix<const float> a, SmallMatrix<const float> b, SmallMatrix<float> c, int64_t rows,
                   int64_t columns, int64_t depth);

/// b [columns, rows] = the transpose of a [rows, columns]. `rows` is a multiple of kProductRows.
void transpose(SmallMatrix<const float> a, int64_t rows, int64_t columns, SmallMatrix<float> b);

}  // namespace hctr::ops::cpu
