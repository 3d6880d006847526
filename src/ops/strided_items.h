// Copies of items that lie at regular distances: slots of rows, runs of rows, columns of slots.
#pragma once

#include <vector>

#include "device/op.h"

namespace hctr::ops {

/// A tensor's elements as (outer, item, column): element (o, i, c) lies at o * outer_stride + i * item_stride + c.
/// Points into memory of the tensor it was made from.
struct Blocks {
  std::byte* data;
  DType dtype;
  Device device;
  int64_t outer, items, width;
  int64_t outer_stride, item_stride;

  /// Every row of the tensor is one outer index, cut into `items` equal pieces.
  static Blocks slots_of(Tensor, int64_t items);
  /// Each run of `items` rows of the tensor is one outer index; an item is a row.
  static Blocks runs_of_rows(Tensor, int64_t items);
  /// Part of the columns of every item.
  Blocks columns(int64_t begin, int64_t end) const;
  /// Part of the items.
  Blocks item_range(int64_t begin, int64_t end) const;
  /// The only item, seen `items` times: for reading alone.
  Blocks repeated(int64_t items) const;
};

/// y = x. Shapes: equal. Dtypes: f32 f16 bf16, alike.
HCTR_OP(void copy_blocks(Context&, Blocks x, Blocks y))

/// y(o, i, c) = x(o, indices[i], c). Shapes: y has indices.size() items, else as x; indices may repeat. Dtypes: f32 f16
/// bf16. Errors: Error(bug) for an index that x does not have.
HCTR_OP(void gather(Context&, Blocks x, const std::vector<int64_t>& indices, Blocks y))
/// dx(o, s, c) = sum over the i with indices[i] = s, in order, of dy(o, i, c); zero where there is none. Overwrites dx.
HCTR_OP(void gather_backward(Context&, Blocks dy, const std::vector<int64_t>& indices, Blocks dx))

}  // namespace hctr::ops
