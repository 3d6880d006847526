// The host memory that this process can still allocate.
#pragma once

#include <cstdint>

namespace hctr {

/// The smaller of two numbers of bytes: the system's available memory, and the memory that the limits of the process's
/// cgroups still allow.
int64_t free_host_memory();

}  // namespace hctr
