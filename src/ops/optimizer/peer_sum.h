// The sum of an array over two ranks that reach each other's memory: each adds up one half, for both.
#pragma once

#include <cstdint>

#include "core/device/op.h"
#include "ops/common/loss_scale.h"

namespace hctr::ops {

/// The length of the first half of n elements: a multiple of a memory line of 128 bytes. If the array begins at a line,
/// no rank reads a line that the other rank writes.
inline int64_t first_half(int64_t n) { return n / 2 / 32 * 32; }

/// mine[i] = theirs[i] = mine[i] + theirs[i] for the first half of the elements, or for the `second` one. Writes
/// nothing once *aborted, if given, is not 0. A sum of two numbers is the same in either order, so both ranks, and any
/// other order of addition, get equal bits. Shapes: mine f32 [n], dense, on the device of the context; theirs [n], on
/// any device. Also checks the sums for overflow as find_overflow does, if search.found is set.
HCTR_OP(void sum_half(Context&, Tensor mine, float* theirs, bool second, const uint32_t* aborted,
                      OverflowSearch search))

}  // namespace hctr::ops
