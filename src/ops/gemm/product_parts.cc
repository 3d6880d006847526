#include "ops/gemm/product_parts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ops/gemm/blas.h"

namespace hctr::ops {
namespace {

constexpr int64_t kUnit = 16;  // granularity of the library's inner loops

int64_t last_part(int64_t whole, int64_t part) { return whole - (parts_of(whole, part) - 1) * part; }

}  // namespace

ProductPart product_tile(int64_t rows, int64_t columns) {
  constexpr int64_t kMost = 512, kLeast = 128, kEnough = 16;
  ProductPart tile{kMost, kMost};
  while (parts_of(rows, tile.rows) * parts_of(columns, tile.columns) < kEnough) {
    const int64_t high = std::min(rows, tile.rows), wide = std::min(columns, tile.columns);
    if (std::max(high, wide) <= kLeast) break;
    (high >= wide ? tile.rows : tile.columns) = parts_of((std::max(high, wide) + 1) / 2, kUnit) * kUnit;
  }
  return tile;
}

ProductPart joined_product_tiles(int64_t rows, int64_t columns, int64_t depth, int threads) {
  constexpr int64_t kPartsOfThread = 2;  // more than one part per thread balances the load if one thread is delayed
  const ProductPart tile = product_tile(rows, columns);
  const int64_t least_rows = last_part(rows, tile.rows), least_columns = last_part(columns, tile.columns);
  if (std::min(least_rows, least_columns) < kUnit || least_rows * least_columns * depth < kLeastLargeProduct)
    return tile;
  const int64_t down = parts_of(rows, tile.rows), across = parts_of(columns, tile.columns);
  const int64_t wanted = std::min(down * across, threads == 1 ? 1 : kPartsOfThread * threads);
  // Only divisions with enough parts are candidates. The best division has the fewest tiles for the busiest thread, and
  // among equals, the least copying: the library copies the rows of the first operand `parts_across` times, and the
  // columns of the second operand `parts_down` times.
  std::pair<int64_t, int64_t> least{std::numeric_limits<int64_t>::max(), 0};
  ProductPart best = tile;
  for (int64_t high = 1; high <= down; ++high)
    for (int64_t wide = 1; wide <= across; ++wide) {
      const int64_t parts_down = parts_of(down, high), parts_across = parts_of(across, wide);
      if (parts_down * parts_across < wanted) break;
      const std::pair cost{parts_of(parts_down * parts_across, threads) * high * wide,
                           rows * parts_across + columns * parts_down};
      if (cost < least) {
        least = cost;
        best = {high * tile.rows, wide * tile.columns};
      }
    }
  return best;
}

}  // namespace hctr::ops
