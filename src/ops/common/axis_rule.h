// The rule of a sum along an axis: it maps each element of the input to the element of the output to which that element
// is added. Shared by both devices.
#pragma once

#include <cstdint>

#include "core/base/platform.h"
#include "core/device/tensor.h"

namespace hctr::ops {

/// Adds column c of the input to column c / divide % modulo of the output: in the same row, or in row 0 if over_rows.
struct AxisRule {
  int64_t divide = 1, modulo = 1;
  bool over_rows = false;
  AxisRule(const Shape& whole, int axis) {
    const int64_t per_row = whole[0] == 0 ? 1 : whole.elements() / whole[0];
    const int64_t last = whole[whole.rank() - 1];
    over_rows = axis == 0;
    if (axis == 0)
      modulo = per_row;
    else if (axis == whole.rank() - 1)
      divide = last, modulo = per_row / (last == 0 ? 1 : last);
    else
      modulo = last;
  }
  HCTR_HD int64_t column(int64_t c) const { return c / divide % modulo; }
};

}  // namespace hctr::ops
