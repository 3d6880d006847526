// A block of a matrix product in the registers of a processor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hctr::ops {

/// a [rows, depth], element (i, k) at a[i * a_row + k * a_column], and b [depth, columns], rows b_row apart.
struct LaneOperands {
  const float* a;
  int64_t a_row, a_column;
  const float* b;
  int64_t b_row, depth;
};

/// The instructions of one kind of processor. sums [rows, columns] += a b, each element a chain of fused multiply-adds
/// in the order of the depth: the same bits with any instructions.
struct FusedLanes {
  int64_t rows, columns;  ///< of the largest block; every block has all columns
  void (*add_products)(const LaneOperands&, int64_t rows, float* sums);

  /// The rows of the next block, of those that are left: `rows` or a power of two below.
  int64_t rows_of_block(int64_t left) const {
    if (left >= rows) return rows;
    int64_t block = 1;
    while (block * 2 <= left) block *= 2;
    return block;
  }
};
inline constexpr size_t kMostLaneSums = 12 * 32;

/// Those that this processor has.
const FusedLanes& fused_lanes();

}  // namespace hctr::ops
