// What this machine reaches at most, measured: the rates that the parts of a step are held against.
#pragma once

#include "core/base/dtype.h"
#include "core/device/context.h"

namespace hctr {

struct Ceilings {
  double copy_bytes = 0;     ///< a second, read and written, of a copy that is larger than the caches
  double product_flops = 0;  ///< a second, of the product of two large square matrices
  DType products = DType::f32;
  double fp8_flops = 0;  ///< likewise of a product of two matrices in FP8; 0: not measured
};

/// With all threads, or on the GPU. Takes a second on a CPU. The best of a few runs. `fp8`: of products in FP8 too.
Ceilings measure_ceilings(Runtime&, DType products, bool fp8 = false);

}  // namespace hctr
