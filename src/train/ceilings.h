// What this machine reaches at most, measured: the rates that the parts of a step are held against.
#pragma once

#include "device/context.h"
#include "device/dtype.h"

namespace hctr {

struct Ceilings {
  double copy_bytes = 0;     ///< a second, read and written, of a copy that is larger than the caches
  double product_flops = 0;  ///< a second, of the product of two large square matrices
  DType products = DType::f32;
};

/// With all threads, or on the GPU. Takes a second on a CPU. The best of a few runs.
Ceilings measure_ceilings(Runtime&, DType products);

}  // namespace hctr
