// What the devices' implementations of ops/bias_gradient.h share.
#pragma once

#include <cstdint>

#include "base/platform.h"

namespace hctr::ops {

/// CUDA sums the rows in at most this many parts, then the sums of the parts in order.
inline constexpr int64_t kMostRowParts = 512;

template <class A>
HCTR_HD A relu_gradient(A factor, A y, A d_y) {
  return y > 0 ? factor * d_y : A(0);
}

}  // namespace hctr::ops
