// Element-wise CPU loops: tensors are treated as one long row if all are dense, else they are processed row by row.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "core/base/platform.h"
#include "core/device/context.h"
#include "core/device/tensor.h"

namespace hctr::ops {

struct Extent {
  int64_t rows = 0, columns = 0;
};

/// The common extent of tensors with equal rows and equal elements per row. Dense tensors become one row.
inline Extent extent_of(std::initializer_list<Tensor> tensors) {
  const bool dense = std::all_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return t.dense(); });
  const Tensor& first = *tensors.begin();
  if (dense) return {1, first.elements()};
  return {first.rows(), first.row_elements()};
}

/// A view of the tensor with this extent.
template <class T>
View<T, 2> rows_of(const Tensor& tensor, Extent extent) {
  return {tensor.data<T>(), {extent.rows, extent.columns}, extent.rows == 1 ? extent.columns : tensor.row_stride()};
}

namespace cpu {

/// Calls body(row, begin, end) in parallel for pieces that cover the extent. Piece boundaries depend on the extent
/// only.
template <class Body>
void for_pieces(Context& ctx, Extent extent, const Body& body, int64_t most_columns = 1 << 14) {
  if (extent.rows == 0 || extent.columns == 0) return;
  const int64_t per_row = (extent.columns + most_columns - 1) / most_columns;
  const int64_t grain = std::max<int64_t>(1, most_columns / std::min(extent.columns, most_columns));
  ctx.threads().parallel_for(extent.rows * per_row, grain, [&](int64_t first, int64_t last) {
    for (int64_t piece = first; piece < last; ++piece) {
      const int64_t begin = piece % per_row * most_columns;
      body(piece / per_row, begin, std::min(begin + most_columns, extent.columns));
    }
  });
}

/// y = f(x...), element by element, in the accumulator type. y may alias an x.
template <class F, class Out, class... In>
void map(Context& ctx, const F& f, View<Out, 2> y, View<const In, 2>... x) {
  for_pieces(ctx, {y.size(0), y.size(1)}, [&](int64_t row, int64_t begin, int64_t end) {
    const auto loop = [begin, end, f](Out* out, const In*... in) {
      HCTR_INDEPENDENT_ITERATIONS
      for (int64_t i = begin; i < end; ++i) out[i] = static_cast<Out>(f(static_cast<Acc<In>>(in[i])...));
    };
    loop(y.row(row), x.row(row)...);
  });
}

}  // namespace cpu
}  // namespace hctr::ops
