// The host memory that this process can still allocate.
#pragma once

#include <cstdint>

namespace hctr {

/// The system's available memory, or the memory that the limits of the process's cgroups still allow, if that is less.
/// In bytes.
int64_t free_host_memory();

}  // namespace hctr
