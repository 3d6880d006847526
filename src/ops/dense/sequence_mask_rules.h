// The formula of ops/dense/sequence_mask.h, shared by every device.
#pragma once

#include "core/device/tensor.h"

namespace hctr::ops {

template <class T>
struct SequenceMask {
  View<const T, 2> from, to;
  int64_t most_to;
  /// Element `at` of row b of the mask.
  HCTR_HD T operator()(int64_t b, int64_t at) const {
    const bool inside = static_cast<float>(at / most_to) < static_cast<float>(*from.row(b)) &&
                        static_cast<float>(at % most_to) < static_cast<float>(*to.row(b));
    return static_cast<T>(inside ? 1.0f : 0.0f);
  }
};

}  // namespace hctr::ops
