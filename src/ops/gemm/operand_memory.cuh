// Memory for other forms of a product's operands.
#pragma once

#include <cstdint>

#include "core/device/context.h"

namespace hctr::ops::cuda {

/// Memory of the Runtime for so many numbers, at a multiple of 256 bytes: for the product that is queued next on the
/// compute stream. Recorded steps keep its address. Errors: Error(device) when memory runs out.
float* operand_memory(Runtime&, int64_t elements);

}  // namespace hctr::ops::cuda
