// The formulas of ops/binary_cross_entropy.h, shared by every device.
#pragma once

#include <cmath>

#include "base/platform.h"

namespace hctr::ops {

/// max(z, 0) - z y + log(1 + exp(-|z|)): the cross entropy without overflow.
template <class A>
HCTR_HD A cross_entropy(A z, A y) {
  const A distance = z < 0 ? -z : z;
  return (z > 0 ? z : A(0)) - z * y + std::log1p(std::exp(-distance));
}

template <class A>
HCTR_HD A probability_of(A z) {
  return 1 / (1 + std::exp(-z));
}

/// The class a label of one column stands for: 1 from 0.5 on, else 0.
template <class A>
HCTR_HD A class_of(A label) {
  return label < A(0.5) ? A(0) : A(1);
}

/// Of several labels one may be missing: below -0.5.
template <class A>
HCTR_HD bool is_missing(A label) {
  return label < A(-0.5);
}

/// 1 / n; 0 when there are no samples, so that an empty batch has loss 0.
template <class A>
HCTR_HD A share_of_one(int32_t n) {
  return n > 0 ? 1 / static_cast<A>(n) : A(0);
}

}  // namespace hctr::ops
