// Copies and gathers of items at regular strides: slots of rows, runs of rows, columns of slots.
#pragma once

#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

/// A view of a tensor's elements as (outer, item, column): element (o, i, c) is at o * outer_stride + i * item_stride +
/// c.
struct StridedItems {
  std::byte* data;
  DType dtype;
  Device device;
  int64_t outer, items, width;
  int64_t outer_stride, item_stride;

  /// Each row of the tensor is one outer index and consists of `items` items of equal width.
  static StridedItems slots_of(Tensor, int64_t items);
  /// Each run of `items` rows of the tensor is one outer index; an item is a row.
  static StridedItems runs_of_rows(Tensor, int64_t items);
  /// Columns [begin, end) of every item.
  StridedItems columns(int64_t begin, int64_t end) const;
  /// Items [begin, end).
  StridedItems item_range(int64_t begin, int64_t end) const;
  /// The only item, repeated `items` times with stride 0. Read-only.
  StridedItems repeated(int64_t items) const;
};

/// y = x. Shapes: equal. Dtypes: f32 f16 bf16, alike.
HCTR_OP(void copy_items(Context&, StridedItems x, StridedItems y))

/// y(o, i, c) = x(o, indices[i], c). Shapes: y has indices.size() items, else as x; indices may repeat. Dtypes: f32 f16
/// bf16. Errors: Error(bug) for an index that x does not have.
HCTR_OP(void gather(Context&, StridedItems x, const std::vector<int64_t>& indices, StridedItems y))
/// dx(o, s, c) = sum over the i with indices[i] = s, in order, of dy(o, i, c); 0 where there is none. Overwrites dx.
HCTR_OP(void gather_backward(Context&, StridedItems dy, const std::vector<int64_t>& indices, StridedItems dx))

}  // namespace hctr::ops
