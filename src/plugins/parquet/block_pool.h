// A memory pool for Arrow's buffers that reuses freed blocks. There is one pool per process, because Arrow's buffers
// may outlive every reader, and because the limit for free blocks applies to all readers together.
#pragma once

#include <arrow/memory_pool.h>

namespace hctr {

/// A pool for the buffers of pages and values, thousands of which are allocated each second. The system would clear
/// each allocation and serve one thread at a time. The pool keeps free blocks of a few sizes, up to a total limit, and
/// is never destroyed. In a build with sanitizers every buffer comes from the system, so the sanitizers can check its
/// bounds.
arrow::MemoryPool* block_pool();

}  // namespace hctr
