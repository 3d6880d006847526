// The memory of the machine that this process can still get.
#pragma once

#include <cstdint>

namespace hctr {

/// Bytes: what the system has free, but no more than the limits of the process's cgroups leave.
int64_t free_host_memory();

}  // namespace hctr
