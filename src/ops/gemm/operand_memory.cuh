// Memory for converted operands of a GEMM.
#pragma once

#include <cstdint>

#include "core/device/context.h"

namespace hctr::ops::cuda {

/// Memory of the Runtime for `elements` f32, aligned to 256 bytes, for the next GEMM queued on the compute stream. The
/// memory never moves, because recorded steps contain its address. Errors: Error(device) if memory runs out.
float* operand_memory(Runtime&, int64_t elements);

}  // namespace hctr::ops::cuda
