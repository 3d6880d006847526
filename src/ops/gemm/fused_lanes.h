// A register-blocked GEMM block on a CPU core.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hctr::ops {

/// Operands of a block. a [rows, depth]: element (i, k) at a[i * a_row + k * a_column]. b [depth, columns] and c [rows,
/// columns]: rows are b_row and c_row elements apart. b consists of panels of FusedLanes::columns columns, b_panel
/// elements apart; in an ordinary row-major matrix, b_panel equals FusedLanes::columns.
struct LaneOperands {
  const float* a;
  int64_t a_row, a_column;
  const float* b;
  int64_t b_row, b_panel, depth;
  float* c;
  int64_t c_row;
  bool first;  ///< true: c = a b; false: c += a b
};

/// Block functions for one instruction set: c = a b, or c += a b. Each element is a chain of fused multiply-adds in the
/// order of the depth, so results are bitwise equal for every instruction set.
struct FusedLanes {
  int64_t rows, columns;  ///< add_products() computes blocks of at most `rows` rows and exactly `columns` columns
  void (*add_products)(const LaneOperands&, int64_t rows);
  /// Number of columns of the widest block of add_wide() with one row. The widest block has half as many columns if it
  /// has two rows, and a quarter if it has four rows. At these widths, b is read in long segments, and there are enough
  /// independent sums to add in parallel.
  int64_t wide_columns;
  /// Computes a block of 1, 2 or 4 rows, with at most wide_columns / rows columns.
  void (*add_wide)(const LaneOperands&, int64_t rows, int64_t columns);

  /// Rows of the next block if `left` rows remain: `rows`, or a smaller power of two.
  int64_t rows_of_block(int64_t left) const { return left >= rows ? rows : power_of_two(left); }
  int64_t rows_of_wide_block(int64_t left) const { return std::min<int64_t>(4, power_of_two(left)); }

  /// The largest power of two that is at most `most`.
  static int64_t power_of_two(int64_t most) {
    int64_t block = 1;
    while (block * 2 <= most) block *= 2;
    return block;
  }
};
/// Maximum number of elements of a block of width FusedLanes::columns.
inline constexpr size_t kMostLaneSums = 12 * 32;

/// The block functions for this processor.
const FusedLanes& fused_lanes();
/// The block functions with the widest vector instructions of this processor. Null: the processor has no instruction
/// set for which fused_lanes_x86.cc has block functions.
const FusedLanes* vector_lanes();

}  // namespace hctr::ops
