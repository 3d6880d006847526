// A view of a tensor as rows of its last dimension.
#pragma once

#include "core/device/tensor.h"

namespace hctr::ops {

/// `count` rows of `width` elements. Each row of the tensor contains `inner` of these rows without gaps.
template <class T>
struct LastRows {
  T* data;
  int64_t count, width, inner, row_stride;
  HCTR_HD T* row(int64_t r) const {
    return inner == 1 ? data + r * row_stride : data + r / inner * row_stride + r % inner * width;
  }
};

/// Views a tensor as rows of its last dimension. The tensor must have at least two dimensions.
template <class T>
LastRows<T> last_rows(const Tensor& t) {
  HCTR_EXPECT(t.rank() >= 2, "rows of the last dimension need at least 2 dimensions, found shape ",
              to_string(t.shape()));
  const int64_t width = t.dim(t.rank() - 1), inner = width == 0 ? 0 : t.row_elements() / width;
  return {t.data<T>(), t.rows() * inner, width, inner, t.row_stride()};
}

}  // namespace hctr::ops
