// Copies rows of sample blocks into a batch buffer.
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

/// Writes the rows of all ranges as rows 0, 1, ... of the batch at `memory` [layout.bytes]. Pads with zeros and empty
/// bags. Does not write the StepState. Blocks and batch are slot-major, so keys are copied in long runs; the pool fills
/// slots in parallel. Errors: Error(bug) if rows or keys exceed the layout's capacity.
void fill_batch(const BatchLayout&, std::byte* memory, std::span<const RowRange> ranges, ThreadPool&);

}  // namespace hctr
