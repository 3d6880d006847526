// Which scores a mask leaves: shared by every device.
#pragma once

#include <optional>

#include "ops/last_rows.h"

namespace hctr::ops {

inline constexpr float kMaskedScore = -10000;

/// The mask's row for row r of x; no data: nothing is masked. Rows of a mask with fewer of them serve x's in turn.
template <class T>
struct MaskRows {
  LastRows<const T> mask;
  int64_t inner;  // of x
  HCTR_HD const T* row(int64_t r) const { return mask.data ? mask.row(r / inner * mask.inner + r % inner % mask.inner) : nullptr; }
};

template <class T>
MaskRows<T> mask_rows(const std::optional<Tensor>& mask, int64_t inner) {
  if (!mask) return {{nullptr, 0, 0, 1, 0}, inner};
  return {last_rows<const T>(*mask), inner};
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
