// Measures the peak rates of this machine. Profiles compare the parts of a step with these rates.
#pragma once

#include "core/base/dtype.h"
#include "core/device/context.h"

namespace hctr {

struct Ceilings {
  double copy_bytes = 0;     ///< bytes per second, read plus written, of a copy larger than the caches
  double product_flops = 0;  ///< FLOP per second of a GEMM of large square matrices
  DType products = DType::f32;
  double fp8_flops = 0;  ///< FLOP per second of a large FP8 GEMM; 0: not measured
};

/// Measures with all threads or on the GPU, and returns the best of a few runs. Takes a second on a CPU. `fp8`: also
/// measures FP8 GEMMs.
Ceilings measure_ceilings(Runtime&, DType products, bool fp8 = false);

}  // namespace hctr
