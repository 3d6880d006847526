// Functors of ops/dense/multiply.h, shared by every device.
#pragma once

#include "core/base/platform.h"

namespace hctr::ops {

struct Minus {
  template <class A>
  HCTR_HD A operator()(A a, A b) const {
    return a - b;
  }
};
struct Negative {
  template <class A>
  HCTR_HD A operator()(A x) const {
    return -x;
  }
};

struct UnlessZero {
  template <class A>
  HCTR_HD A operator()(A x, A y) const {
    return x == 0 ? A(0) : y;
  }
};

}  // namespace hctr::ops
