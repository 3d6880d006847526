// Copies rows of sample blocks into one batch.
#pragma once

#include <span>

#include "core/base/thread_pool.h"
#include "formats/data/batch_layout.h"
#include "formats/data/sample_block.h"

namespace hctr {

/// Rows [first, first + count) of a block.
struct RowRange {
  const SampleBlock* block;
  int64_t first, count;
};

/// Writes the rows of `ranges`, one after another, as rows 0, 1, ... of the batch in `memory` [layout.bytes], and pads
/// the rest: zeros and empty bags. Leaves the StepState alone. Both sides are slot-major, so keys move in whole runs,
/// and the threads of the pool fill slots concurrently. Errors: Error(bug) if there are more rows than the
/// layout has, or more keys than its capacity.
void fill_batch(const BatchLayout&, std::byte* memory, std::span<const RowRange> ranges, ThreadPool&);

}  // namespace hctr
