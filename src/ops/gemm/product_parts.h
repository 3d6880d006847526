// How a CPU GEMM is split into parts, one part per task. If rounding depends on the split, the split depends only on
// the size of the GEMM, so that results are equal for any number of threads. Otherwise, the split may also depend on
// the number of threads.
#pragma once

#include <cstdint>

namespace hctr::ops {

/// Size of the parts of the result. Parts in the last row and column of parts may be smaller.
struct ProductPart {
  int64_t rows, columns;
};

inline int64_t parts_of(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/// The size of a tile: the smallest part that is worth a task, for a result of this size. The tile size must depend
/// only on the size of the result, because rounding may depend on the tile.
ProductPart product_tile(int64_t rows, int64_t columns);

/// Joins tiles into larger parts, and leaves enough parts for all threads. The library copies the operands of each part
/// to its own memory; the shape of the parts minimizes these copies. To be called only for f32, and only if
/// blas_rounds_alike(). Returns product_tile() if the GEMM's tiles are too small for the guarantee of
/// blas_rounds_alike().
ProductPart joined_product_tiles(int64_t rows, int64_t columns, int64_t depth, int threads);

}  // namespace hctr::ops
