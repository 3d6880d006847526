// vector_lanes() for processors without block functions in vector instructions.
#include "ops/gemm/fused_lanes.h"

namespace hctr::ops {

const FusedLanes* vector_lanes() { return nullptr; }

}  // namespace hctr::ops
