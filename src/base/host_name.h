// The name of this machine.
#pragma once

#include <string>

namespace hctr {

/// As the system has it; "unknown host" where it has none.
std::string host_name();

}  // namespace hctr
