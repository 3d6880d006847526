// The host memory that this process can still allocate.
#pragma once

#include <cstdint>

namespace hctr {

/// Bytes: the minimum of the system's available memory and what the limits of the process's cgroups leave.
int64_t free_host_memory();

}  // namespace hctr
