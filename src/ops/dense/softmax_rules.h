// Masking of softmax inputs, shared by every device.
#pragma once

#include <optional>

#include "ops/common/last_rows.h"
#include "ops/dense/softmax.h"

namespace hctr::ops {

inline constexpr float kMaskedScore = -10000;

/// Returns the mask row for row r of x; broadcasts dimensions of size 1. Null data: no mask.
template <class T>
struct MaskRows {
  LastRows<const T> mask;
  // inner: rows of x per sample. lower: size of the third dimension of with_ones(x).
  int64_t inner, lower;
  // Element strides of the mask, 0 for broadcast. upper_step: of its second dimension. lower_step: of its third
  // dimension.
  int64_t upper_step, lower_step;
  HCTR_HD const T* row(int64_t r) const {
    if (!mask.data) return nullptr;
    const int64_t sample = r / inner, at = r % inner;
    return mask.row(sample * mask.inner + at / lower * upper_step + at % lower * lower_step);
  }
};

template <class T>
MaskRows<T> mask_rows(const std::optional<Tensor>& mask, const Shape& x) {
  if (!mask) return {{nullptr, 0, 0, 1, 0}, 1, 1, 0, 0};
  const Shape whole = with_ones(x), part = with_ones(mask->shape());
  return {last_rows<const T>(*mask), whole[1] * whole[2], whole[2], part[1] == 1 ? 0 : part[2], part[2] == 1 ? 0 : 1};
}

template <class T>
HCTR_HD bool keeps(const T* mask, int64_t j) {
  return !mask || static_cast<Acc<T>>(mask[j]) >= Acc<T>(0.5);
}

template <class T>
HCTR_HD Acc<T> score(const T* x, const T* mask, int64_t j) {
  return keeps(mask, j) ? static_cast<Acc<T>>(x[j]) : static_cast<Acc<T>>(kMaskedScore);
}

}  // namespace hctr::ops
