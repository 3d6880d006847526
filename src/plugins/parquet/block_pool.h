// Memory for Arrow's buffers, kept to be used again.
#pragma once

#include <arrow/memory_pool.h>

namespace hctr {

/// A pool for the buffers of pages and values, thousands of which are allocated each second. The system would clear
/// their memory each time and serve one thread at a time; the pool keeps free blocks of a few sizes, up to a limit in
/// total. It is never destroyed. In a build with sanitizers each buffer comes from the system, so that they see its
/// bounds.
arrow::MemoryPool* block_pool();

}  // namespace hctr
