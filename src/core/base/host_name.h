// The name of this machine.
#pragma once

#include <string>

#include "hctr/surroundings.h"

namespace hctr {

/// As the system has it; "unknown host" where it has none.
std::string host_name();
/// The host's identity, as NCCL defines it: NCCL_HOSTID of the environment, else the name. Processes with different
/// ones share no memory.
std::string host_id(const Environment&);

}  // namespace hctr
