// A block of a GEMM in the registers of a CPU core.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hctr::ops {

/// a [rows, depth], element (i, k) at a[i * a_row + k * a_column]; b [depth, columns] and c [rows, columns], rows b_row
/// and c_row apart.
struct LaneOperands {
  const float* a;
  int64_t a_row, a_column;
  const float* b;
  int64_t b_row, depth;
  float* c;
  int64_t c_row;
  bool first;  ///< sums begin at zero, not at c
};

/// The instructions of one kind of processor. c = a b, or c += a b, each element a chain of fused multiply-adds
/// in the order of the depth: the same bits with any instructions.
struct FusedLanes {
  int64_t rows, columns;  ///< size of the largest block; every block has all columns
  void (*add_products)(const LaneOperands&, int64_t rows);
  /// Width of a block of one row. Blocks of two and four rows have a half and a quarter of it, so that b is read in
  /// long pieces.
  int64_t wide_columns;
  void (*add_wide)(const LaneOperands&, int64_t rows);

  /// Rows of the next block, given the remaining rows: `rows`, or a smaller power of two.
  int64_t rows_of_block(int64_t left) const { return left >= rows ? rows : power_of_two(left); }
  int64_t rows_of_wide_block(int64_t left) const { return std::min<int64_t>(4, power_of_two(left)); }

  /// The largest that is no more than `most`.
  static int64_t power_of_two(int64_t most) {
    int64_t block = 1;
    while (block * 2 <= most) block *= 2;
    return block;
  }
};
/// The most numbers of a block of FusedLanes::columns.
inline constexpr size_t kMostLaneSums = 12 * 32;

/// Those that this processor has.
const FusedLanes& fused_lanes();

}  // namespace hctr::ops
