// GEMMs of cuBLASLt as candidates. Training steps use cuBLASLt where our kernels are slower.
#pragma once

#include "candidate.h"

namespace hctr::gemm_bench {

/// The first algorithms that cuBLASLt proposes, one candidate each, with one GEMM per layer. Empty for dgrad, which
/// cuBLASLt cannot fuse. Errors: Error(device).
Candidates library_gemms(Operator, Type);

}  // namespace hctr::gemm_bench
