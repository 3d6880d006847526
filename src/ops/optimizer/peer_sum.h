// The all-reduce of an array over two ranks with access to each other's memory: each rank sums one half of the array
// and writes the sums to both ranks.
#pragma once

#include <cstdint>

#include "core/device/op.h"
#include "ops/common/loss_scale.h"

namespace hctr::ops {

/// Number of elements of the first half, a multiple of the 32 elements of a 128-byte cache line. If the array is
/// aligned to a line, no rank reads a line that the other rank writes.
inline int64_t first_half(int64_t n) { return n / 2 / 32 * 32; }

/// mine[i] = theirs[i] = mine[i] + theirs[i] for the first half of the elements, or for the second half if `second`.
/// Writes nothing if `aborted` is given and *aborted is not 0. The sum of two values does not depend on the order of
/// the values, so both ranks get the same bits as from any other all-reduce. If search.found is set, checks the sums
/// for overflow like find_overflow(). Shapes: mine f32 [n], dense, on the device of the context; theirs [n], on any
/// device.
HCTR_OP(void sum_half(Context&, Tensor mine, float* theirs, bool second, const uint32_t* aborted,
                      OverflowSearch search))

}  // namespace hctr::ops
