// Copies and gathers of items at regular strides: slots of rows, groups of rows, or columns of slots.
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

  /// The outer index is the row of the tensor. Each row is split into `items` items of equal width.
  static StridedItems slots_of(Tensor, int64_t items);
  /// The outer index counts groups of `items` consecutive rows of the tensor. An item is one of these rows.
  static StridedItems runs_of_rows(Tensor, int64_t items);
  /// Columns [begin, end) of every item.
  StridedItems columns(int64_t begin, int64_t end) const;
  /// Items [begin, end).
  StridedItems item_range(int64_t begin, int64_t end) const;
  /// Repeats the only item `items` times with stride 0. The result is read-only.
  StridedItems repeated(int64_t items) const;
};

/// y = x. Shapes: equal. Dtypes: f32 f16 bf16, equal.
HCTR_OP(void copy_items(Context&, StridedItems x, StridedItems y))

/// y(o, i, c) = x(o, indices[i], c). Shapes: y has indices.size() items, otherwise as x; indices may repeat. Dtypes:
/// f32 f16 bf16. Errors: Error(bug) if an index is out of range.
HCTR_OP(void gather(Context&, StridedItems x, const std::vector<int64_t>& indices, StridedItems y))
/// dx(o, s, c) = the sum of dy(o, i, c) over all i with indices[i] = s, in ascending order of i; 0 if there is no such
/// i. Overwrites dx.
HCTR_OP(void gather_backward(Context&, StridedItems dy, const std::vector<int64_t>& indices, StridedItems dx))

}  // namespace hctr::ops
