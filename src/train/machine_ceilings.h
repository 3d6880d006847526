// The measured peak rates of this machine, with which the parts of a step are compared.
#pragma once

#include "core/base/dtype.h"
#include "core/device/context.h"

namespace hctr {

struct Ceilings {
  double copy_bytes = 0;     ///< bytes per second, read plus written, of a copy larger than the caches
  double product_flops = 0;  ///< FLOP per second of a GEMM of two large square matrices
  DType products = DType::f32;
  double fp8_flops = 0;  ///< the same for an FP8 GEMM; 0: not measured
};

/// Measures with all threads, or on the GPU; the best of a few runs. Takes a second on a CPU. `fp8`: measures FP8 GEMMs
/// too.
Ceilings measure_ceilings(Runtime&, DType products, bool fp8 = false);

}  // namespace hctr
