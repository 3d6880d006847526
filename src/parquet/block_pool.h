// Memory for Arrow's buffers, kept to be used again.
#pragma once

#include <arrow/memory_pool.h>

namespace hctr {

/// Buffers of pages and values come and go by the thousand each second. The system would clear their memory each time
/// anew, and give it to one thread at a time; here blocks of a few sizes wait for their next use, up to a limit for all
/// of them together. Lives as long as the program. In a build with sanitizers each buffer is the system's, which these
/// can tell apart.
arrow::MemoryPool* block_pool();

}  // namespace hctr
