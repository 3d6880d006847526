// Loops over columns: two sums per column over all rows, and maps whose function depends on the row and the column.
#pragma once

#include <algorithm>

#include "ops/common/element_loops.h"

namespace hctr::ops {

/// Two values that one pass sums together.
template <class A>
struct Pair {
  A first, second;
};

/// Number of parts of the rows that the CUDA kernels sum separately.
inline constexpr int64_t kRowParts = 32;
/// Scratch memory for the partial sums of `columns` columns.
inline TensorSpec column_sums_scratch(int64_t columns) { return TensorSpec(DType::f32, {kRowParts, 2 * columns}); }

namespace cpu {

/// Writes the sums of f(b, j) over b in [0, rows) to first[j] and second[j].
template <class A, class F>
void sum_columns(Context& ctx, int64_t rows, int64_t columns, const F& f, A* first, A* second) {
  // sums 128 rows, then adds that sum to the total, which reduces the rounding error and fixes the order
  constexpr int64_t kColumns = 32, kRows = 128;
  ctx.threads().parallel_for(columns, kColumns, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) first[j] = second[j] = 0;
    for (int64_t from = 0; from < rows; from += kRows) {
      Pair<A> sums[kColumns] = {};
      for (int64_t b = from; b < std::min(from + kRows, rows); ++b)
        for (int64_t j = begin; j < end; ++j) {
          const Pair<A> next = f(b, j);
          sums[j - begin].first += next.first;
          sums[j - begin].second += next.second;
        }
      for (int64_t j = begin; j < end; ++j) {
        first[j] += sums[j - begin].first;
        second[j] += sums[j - begin].second;
      }
    }
  });
}

/// y(b, j) = f(b, j, x(b, j)...) in the accumulator type.
template <class F, class T, class... In>
void map_columns(Context& ctx, F f, View<T, 2> y, View<const In, 2>... x) {
  if constexpr (requires { f.prepare(); }) f.prepare();
  for_pieces(ctx, {y.size(0), y.size(1)}, [&](int64_t row, int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j)
      y.row(row)[j] = static_cast<T>(f(row, j, static_cast<Acc<In>>(x.row(row)[j])...));
  });
}

}  // namespace cpu
}  // namespace hctr::ops
