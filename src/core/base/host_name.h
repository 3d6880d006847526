// The name of this machine.
#pragma once

#include <string>

#include "hctr/surroundings.h"

namespace hctr {

/// The system's host name, or "unknown host" if the system has none.
std::string host_name();
/// The host's identity, as NCCL defines it: the environment variable NCCL_HOSTID, else host_name(). Processes with
/// different host identities share no memory.
std::string host_id(const Environment&);

}  // namespace hctr
