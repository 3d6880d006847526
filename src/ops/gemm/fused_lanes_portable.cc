// Processors for which no lanes with vector instructions are written.
#include "ops/gemm/fused_lanes.h"

namespace hctr::ops {

const FusedLanes* vector_lanes() { return nullptr; }

}  // namespace hctr::ops
