// How a CPU GEMM is cut into parts, one a task. The cut depends on the size alone, so that results do not depend on the
// number of threads; it depends on the number of threads too if results do not depend on the parts.
#pragma once

#include <cstdint>

namespace hctr::ops {

/// Parts of the result: those of the last row and column of parts may be smaller.
struct ProductPart {
  int64_t rows, columns;
};

inline int64_t parts_of(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/// The smallest part that is worth a task, a tile, for a result of this size. Depends on nothing else, since rounding
/// may depend on the tile.
ProductPart product_tile(int64_t rows, int64_t columns);

/// As many tiles in one part as leave each thread enough parts, in the shape for which the library copies least: it
/// copies the operands of each part to its own memory. Only for f32 and where blas_rounds_alike(); a GEMM whose tiles
/// are too small for that stays in tiles.
ProductPart joined_product_tiles(int64_t rows, int64_t columns, int64_t depth, int threads);

}  // namespace hctr::ops
