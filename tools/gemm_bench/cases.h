// The GEMMs of the four models of the step table (tools/bench/model_configs.py).
#pragma once

#include <vector>

#include "operands.h"

namespace hctr::gemm_bench {

/// All cases, ordered by operator, type and batch size.
std::vector<Case> all_cases();

}  // namespace hctr::gemm_bench
